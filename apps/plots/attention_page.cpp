#include "apps/plots/attention_page.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "apps/plots/embedded_page.h"
#include "data/base/base64.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

// Maps 0 … 1 to 0 … 65535, low byte first.
std::string packed(const std::vector<float>& weights) {
  std::string bytes;
  bytes.reserve(2 * weights.size());
  for (const float weight : weights) {
    const auto level = static_cast<std::uint32_t>(std::lround(std::clamp(weight, 0.0F, 1.0F) * 65535.0F));
    bytes += static_cast<char>(level & 255);
    bytes += static_cast<char>(level >> 8);
  }
  return encode_base64(bytes);
}

Json patterns_of(const AttentionMaps& maps) {
  Json patterns = Json::array();
  for (std::size_t layer = 0; layer < maps.layers; ++layer) {
    for (std::size_t head = 0; head < maps.heads; ++head) {
      const HeadPattern p = pattern_of(maps, layer, head);
      Json row = Json::array();
      for (const double value : {p.entropy, p.itself, p.previous, p.next, p.first}) {
        row.push_back(std::isnan(value) ? Json() : Json(std::round(value * 1e4) / 1e4));
      }
      patterns.push_back(std::move(row));
    }
  }
  return patterns;
}

Json json_of(const AttentionMaps& maps) {
  Json json;
  json["name"] = maps.name;
  json["queries"] = token_labels(maps.queries);
  json["keys"] = token_labels(maps.keys);
  json["layers"] = maps.layers;
  json["heads"] = maps.heads;
  json["patterns"] = patterns_of(maps);
  json["weights"] = packed(maps.weights);
  return json;
}

// In a script element, "</script" ends it and "<!--" begins a comment, even inside quotes.
std::string inside_script(const Json& json) {
  std::string text;
  for (const char letter : json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace)) {
    if (letter == '<') {
      text += "\\u003c";
    } else {
      text += letter;
    }
  }
  return text;
}

}  // namespace

std::string attention_page(const AttentionPage& page, std::span<const AttentionMaps> maps) {
  Json data;
  data["model"] = page.model;
  data["text"] = page.text;
  data["layer"] = page.layer;
  data["head"] = page.head;
  data["opensWithHead"] = page.opens_with_head;
  data["maps"] = Json::array();
  for (const AttentionMaps& each : maps) data["maps"].push_back(json_of(each));
  return embedded::replaced(embedded::whole_page(embedded::kAttentionPage), "/*DATA*/", inside_script(data));
}

}  // namespace zoo
