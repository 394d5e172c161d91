#pragma once

#include <string>
#include <vector>

namespace zoo {

/// A model as --model names it: DIR or NAME=DIR.
struct GivenModel {
  std::string name, path;  // the name by which requests choose it; as find_model() found it
};

/// Each has a name of its own: the given one, else the folder's, with the folders above it where two would be
/// the same ("a/final", "b/final"). Throws UsageError for a model or a name that is given twice, and Error as
/// find_model().
std::vector<GivenModel> name_models(const std::vector<std::string>& given);

}  // namespace zoo
