#pragma once

#include <string>
#include <vector>

namespace zoo {

// Names that flags and arguments take in place of a file, for a shell to complete.

std::vector<std::string> corpus_names();
std::vector<std::string> toy_set_names();
/// Both.
std::vector<std::string> dataset_names();

}  // namespace zoo
