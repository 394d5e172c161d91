#pragma once

#include <span>
#include <string>
#include <string_view>

namespace zoo {

/// A named set of flag values: a JSON object of flag: value.
struct Recipe {
  std::string name;
  std::string_view json;
};

/// The files of apps/recipes, built into the program: an installed tzoo needs no folder of them.
std::span<const Recipe> embedded_recipes();

}  // namespace zoo
