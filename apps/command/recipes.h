#pragma once

#include <span>
#include <string>
#include <string_view>

namespace zoo {

/// A named JSON object of flag values.
struct Recipe {
  std::string name;
  std::string_view json;
};

/// The files of apps/recipes, embedded in the program.
std::span<const Recipe> embedded_recipes();

}  // namespace zoo
