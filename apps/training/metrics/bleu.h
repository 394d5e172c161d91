#pragma once

#include <string>
#include <vector>

namespace zoo {

/// BLEU of a corpus (Papineni et al., 2002): the geometric mean of the precisions of 1- to 4-grams of words
/// between blanks, times exp(1 - wanted / written) where less was written than wanted; one reference each, in
/// [0, 1]. Without one common 4-gram it is 0.
double bleu(const std::vector<std::string>& written, const std::vector<std::string>& wanted);

}  // namespace zoo
