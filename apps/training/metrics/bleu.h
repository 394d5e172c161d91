#pragma once

/// @file
/// Use:
///
///     const double score = zoo::bleu({"the cat sat down"}, {"the cat sat down"});  // 1

#include <string>
#include <vector>

namespace zoo {

/// Corpus BLEU (Papineni et al., 2002), in [0, 1]: the geometric mean of the precisions of 1- to 4-grams of
/// words separated by blanks, times exp(1 - wanted / written) if the output is shorter than the reference.
/// One reference per text; 0 without a common 4-gram.
double bleu(const std::vector<std::string>& written, const std::vector<std::string>& wanted);

}  // namespace zoo
