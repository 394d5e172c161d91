#include "models/formats/weight_table.h"

#include <algorithm>

namespace zoo {
namespace {

bool begins_with_one_of(const std::string& name, const std::vector<std::string>& beginnings) {
  return std::ranges::any_of(beginnings, [&](const auto& beginning) { return name.starts_with(beginning); });
}

}  // namespace

void add_weights_and_biases(WeightTable& table, const std::vector<WeightName>& modules) {
  for (const WeightName& module : modules) {
    for (const char* part : {".weight", ".bias"}) {
      WeightName& name = table.names.emplace_back(module);
      name.ours += part;
      for (std::string& theirs : name.theirs) theirs += part;
      for (std::string& other : name.others) other += part;
    }
  }
}

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
      one.joined = number_layer(name.joined, layer);
      for (std::string& theirs : one.theirs) theirs = number_layer(theirs, layer);
      for (std::string& other : one.others) other = number_layer(other, layer);
    }
  }
  return expanded;
}

std::string with_prefix(const WeightTable& table, const std::string& name) {
  return begins_with_one_of(name, table.unprefixed) ? name : table.prefix + name;
}

std::string in_class(const WeightTable& table, const std::string& name) {
  for (const auto& [in_file, own] : table.modules)
    if (name == in_file || name.starts_with(in_file + ".")) return own + name.substr(in_file.size());
  return with_prefix(table, name);
}

std::string in_table(const WeightTable& table, const std::string& name) {
  for (const auto& [in_file, own] : table.modules)
    if (name == own || name.starts_with(own + ".")) return in_file + name.substr(own.size());
  return name.starts_with(table.prefix) ? name.substr(table.prefix.size()) : name;
}

bool is_of_a_head(const WeightTable& table, const std::string& name) {
  return begins_with_one_of(name, table.unprefixed) || begins_with_one_of(name, table.of_heads);
}

}  // namespace zoo
