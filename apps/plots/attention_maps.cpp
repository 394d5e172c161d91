#include "apps/plots/attention_maps.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace zoo {
namespace {

// Mean weight of key = query + offset over the queries with such a key.
double along(std::span<const float> map, std::size_t size, int offset) {
  double sum = 0;
  int count = 0;
  for (int query = 0; query < static_cast<int>(size); ++query) {
    const int key = query + offset;
    if (key < 0 || key >= static_cast<int>(size)) continue;
    sum += static_cast<double>(map[static_cast<std::size_t>(query) * size + static_cast<std::size_t>(key)]);
    ++count;
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::span<const float> AttentionMaps::head(std::size_t layer, std::size_t head) const {
  const std::size_t size = queries.size() * keys.size();
  return std::span(weights).subspan((layer * heads + head) * size, size);
}

float AttentionMaps::weight(std::size_t layer, std::size_t head_number, std::size_t query,
                            std::size_t key) const {
  return head(layer, head_number)[query * keys.size() + key];
}

std::size_t AttentionMaps::strongest_key(std::size_t layer, std::size_t head_number,
                                         std::size_t query) const {
  const auto row = head(layer, head_number).subspan(query * keys.size(), keys.size());
  return static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

HeadPattern pattern_of(std::span<const float> map, std::size_t keys, bool square) {
  const std::size_t queries = map.size() / keys;
  HeadPattern pattern;
  for (std::size_t i = 0; i < map.size(); ++i) {
    const auto weight = static_cast<double>(map[i]);
    if (weight > 0) pattern.entropy -= weight * std::log2(weight);
    if (i % keys == 0) pattern.first += weight;
  }
  pattern.entropy /= static_cast<double>(queries);
  pattern.first /= static_cast<double>(queries);
  const double none = std::numeric_limits<double>::quiet_NaN();
  pattern.itself = square ? along(map, keys, 0) : none;
  pattern.previous = square ? along(map, keys, -1) : none;
  pattern.next = square ? along(map, keys, 1) : none;
  return pattern;
}

HeadPattern pattern_of(const AttentionMaps& maps, std::size_t layer, std::size_t head) {
  return pattern_of(maps.head(layer, head), maps.keys.size(), maps.name != "cross");
}

std::string token_label(const std::string& token) {
  std::string label;
  for (const char letter : token) {
    if (letter == ' ') {
      label += "␣";
    } else if (letter == '\n') {
      label += "↵";
    } else if (letter == '\t') {
      label += "⇥";
    } else if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F) {
      label += "\uFFFD";
    } else {
      label += letter;
    }
  }
  return label;
}

std::vector<std::string> token_labels(const std::vector<std::string>& tokens) {
  std::vector<std::string> labels;
  for (const std::string& token : tokens) labels.push_back(token_label(token));
  return labels;
}

}  // namespace zoo
