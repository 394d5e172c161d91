#include "models/io/weight_table.h"

#include <algorithm>

namespace zoo {

std::string number_layer(const std::string& pattern, std::int64_t layer) {
  const std::size_t at = pattern.find("{}");
  if (at == std::string::npos) return pattern;
  return pattern.substr(0, at) + std::to_string(layer) + pattern.substr(at + 2);
}

std::vector<WeightName> expand_layers(const std::vector<WeightName>& names, std::int64_t num_layers) {
  std::vector<WeightName> expanded;
  for (const WeightName& name : names) {
    const bool repeated = name.ours.find("{}") != std::string::npos;
    for (std::int64_t layer = 0; layer < (repeated ? num_layers : 1); ++layer) {
      WeightName& one = expanded.emplace_back(name);
      one.ours = number_layer(name.ours, layer);
      for (std::string& theirs : one.theirs) theirs = number_layer(theirs, layer);
    }
  }
  return expanded;
}

std::string with_prefix(const WeightTable& table, const std::string& name) {
  const auto& bare = table.unprefixed;
  return std::find(bare.begin(), bare.end(), name) != bare.end() ? name : table.prefix + name;
}

}  // namespace zoo
