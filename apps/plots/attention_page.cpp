#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "apps/plots/attention_maps.h"
#include "apps/plots/embedded_page.h"
#include "data/base/base64.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::uint8_t> levels_of(const std::vector<float>& weights) {
  std::vector<std::uint8_t> levels;
  levels.reserve(weights.size());
  for (const float weight : weights)
    levels.push_back(static_cast<std::uint8_t>(std::lround(std::clamp(weight, 0.0F, 1.0F) * 255.0F)));
  return levels;
}

// True if no query attends to a later key.
bool is_causal(const std::vector<std::uint8_t>& levels, std::size_t queries, std::size_t keys) {
  if (queries != keys) return false;
  for (std::size_t row = 0; row < levels.size() / keys; ++row) {
    const auto begin = levels.begin() + static_cast<std::ptrdiff_t>(row * keys);
    const auto later = begin + static_cast<std::ptrdiff_t>(row % queries + 1);
    if (std::any_of(later, begin + static_cast<std::ptrdiff_t>(keys), [](auto level) { return level > 0; }))
      return false;
  }
  return true;
}

// Computed from exact weights, not from the levels.
Json patterns_of(const AttentionMaps& maps) {
  Json patterns = Json::array();
  for (std::size_t layer = 0; layer < maps.layers; ++layer) {
    for (std::size_t head = 0; head < maps.heads; ++head) {
      Json row = Json::array();
      for (const auto& [name, value] : pattern_of(maps, layer, head).numbers())
        row.push_back(std::isnan(value) ? Json() : Json(std::round(value * 1e4) / 1e4));
      patterns.push_back(std::move(row));
    }
  }
  return patterns;
}

Json json_of(const AttentionMaps& maps) {
  const std::vector<std::uint8_t> levels = levels_of(maps.weights);
  const std::size_t queries = maps.queries.size(), keys = maps.keys.size();
  const bool causal = is_causal(levels, queries, keys);
  Json json;
  json["name"] = maps.name;
  json["queries"] = token_labels(maps.queries);
  json["keys"] = token_labels(maps.keys);
  json["specialQueries"] = maps.special_queries;
  json["specialKeys"] = maps.special_keys;
  json["layers"] = maps.layers;
  json["heads"] = maps.heads;
  json["causal"] = causal;
  json["patterns"] = patterns_of(maps);
  json["weights"] = encode_base64(encode_levels(levels, queries, keys, causal));
  return json;
}

}  // namespace

std::string attention_page(const AttentionPage& page, std::span<const AttentionMaps> maps) {
  Json data;
  data["model"] = page.model;
  data["text"] = page.text;
  data["layer"] = page.layer ? Json(*page.layer) : Json();
  data["head"] = page.head ? Json(*page.head) : Json();
  data["maps"] = Json::array();
  for (const AttentionMaps& each : maps) data["maps"].push_back(json_of(each));
  return embedded::replaced(
      embedded::whole_page(embedded::kAttentionPage), "/*DATA*/",
      embedded::inside_script(data.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace)));
}

}  // namespace zoo
