#include "apps/plots/attention_maps.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace zoo {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Mean weight of key = query + offset over the queries with such a key.
double along(std::span<const float> map, std::size_t size, std::ptrdiff_t offset) {
  const auto length = static_cast<std::ptrdiff_t>(size), begin = std::max<std::ptrdiff_t>(0, -offset),
             end = length - std::max<std::ptrdiff_t>(0, offset);
  double sum = 0;
  for (std::ptrdiff_t query = begin; query < end; ++query)
    sum += static_cast<double>(map[static_cast<std::size_t>(query * length + query + offset)]);
  return begin < end ? sum / static_cast<double>(end - begin) : kNone;
}

// Mean weight, over the queries whose token stood before, of the keys `offset` after its earlier places.
double after_repeats(std::span<const float> map, const std::vector<std::string>& tokens, std::size_t offset) {
  double sum = 0;
  int count = 0;
  for (std::size_t query = 0; query < tokens.size(); ++query) {
    bool repeats = false;
    for (std::size_t before = 0; before < query; ++before) {
      if (tokens[before] != tokens[query]) continue;
      sum += static_cast<double>(map[query * tokens.size() + before + offset]);
      repeats = true;
    }
    count += repeats ? 1 : 0;
  }
  return count > 0 ? sum / count : kNone;
}

constexpr std::size_t kMostValues = 14;    // up to this many tokens on an axis, cells show values
constexpr std::size_t kThumbnail = 40;     // maximum cells per side of a small map
constexpr std::size_t kGap = 3;            // empty cells between small maps
constexpr std::size_t kShortestSide = 10;  // minimum cells per side of a small map

int cell_size(std::size_t cells) { return std::clamp(static_cast<int>(1500 / cells), 15, 56); }

// Side of a small map: one cell per token, shrunk for many tokens, enlarged for few.
std::size_t side_of(std::size_t tokens) {
  if (tokens > kThumbnail) return kThumbnail;
  return tokens * ((kShortestSide + tokens - 1) / tokens);
}

// Arranges small maps in a large one.
struct Mosaic {
  std::size_t height, width;  // of a small map
  std::vector<std::vector<double>> cells;

  Mosaic(const AttentionMaps& maps, std::size_t layers, std::size_t heads)
      : height(side_of(maps.queries.size())), width(side_of(maps.keys.size())) {
    cells.assign(layers * (height + kGap) - kGap, std::vector<double>(heads * (width + kGap) - kGap, kNone));
  }

  void put(const AttentionMaps& maps, std::size_t layer, std::size_t head, std::size_t top,
           std::size_t left) {
    top *= height + kGap;
    left *= width + kGap;
    const std::size_t rows = maps.queries.size(), columns = maps.keys.size();
    for (std::size_t y = 0; y < std::max(height, rows); ++y) {
      for (std::size_t x = 0; x < std::max(width, columns); ++x) {
        double& cell =
            cells[top + y * height / std::max(height, rows)][left + x * width / std::max(width, columns)];
        const float weight = maps.weight(layer, head, y * rows / std::max(height, rows),
                                         x * columns / std::max(width, columns));
        cell = std::fmax(cell, static_cast<double>(weight));  // the first replaces NaN
      }
    }
  }
};

// Each number at the middle of its small map.
std::vector<std::string> labels_of(const std::vector<std::size_t>& numbers, std::size_t side) {
  std::vector<std::string> labels(numbers.size() * (side + kGap) - kGap);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    labels[i * (side + kGap) + side / 2] = std::to_string(numbers[i]);
  return labels;
}

// The dark end of the colours: 1 for few tokens; for many, whose weights are small, the largest weight.
double dark_end(const std::vector<std::vector<double>>& cells, std::size_t tokens) {
  if (tokens <= kMostValues) return 1;
  double largest = 0;  // cells without a value are NaN
  for (const auto& row : cells)
    for (const double weight : row) largest = std::max(largest, weight);
  return largest > 0 ? largest : 1;
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
  pattern.itself = square ? along(map, keys, 0) : kNone;
  pattern.previous = square ? along(map, keys, -1) : kNone;
  pattern.next = square ? along(map, keys, 1) : kNone;
  return pattern;
}

HeadPattern pattern_of(const AttentionMaps& maps, std::size_t layer, std::size_t head) {
  const std::span<const float> map = maps.head(layer, head);
  const bool square = maps.name != "cross";
  HeadPattern pattern = pattern_of(map, maps.keys.size(), square);
  pattern.duplicate = square ? after_repeats(map, maps.keys, 0) : kNone;
  pattern.induction = square ? after_repeats(map, maps.keys, 1) : kNone;
  return pattern;
}

std::string token_label(const std::string& token) {
  std::string label;
  for (const char letter : token) {
    const bool is_control = static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F;
    label += letter == ' '    ? "␣"
             : letter == '\n' ? "↵"
             : letter == '\t' ? "⇥"
             : is_control     ? "\uFFFD"
                              : std::string(1, letter);
  }
  return label;
}

std::vector<std::string> token_labels(const std::vector<std::string>& tokens) {
  std::vector<std::string> labels;
  for (const std::string& token : tokens) labels.push_back(token_label(token));
  return labels;
}

Figure head_figure(const AttentionMaps& maps, std::size_t layer, std::size_t head) {
  const std::size_t queries = maps.queries.size(), keys = maps.keys.size();
  HeatMap map{.axes = {.title = maps.name + " attention, layer " + std::to_string(layer) + ", head " +
                                std::to_string(head),
                       .x = "key (attended to)",
                       .y = "query (attends)"},
              .rows = token_labels(maps.queries),
              .columns = token_labels(maps.keys),
              .values = std::max(queries, keys) <= kMostValues,
              .low = 0,
              .high = 1};
  for (std::size_t query = 0; query < queries; ++query) {
    const auto row = maps.head(layer, head).subspan(query * keys, keys);
    map.cells.emplace_back(row.begin(), row.end());
  }
  if (maps.causal) map.mask_causally();
  map.high = dark_end(map.cells, std::max(queries, keys));
  Figure figure = heat_map(map);
  figure.width = std::max(480, 240 + cell_size(keys) * static_cast<int>(keys));
  figure.height = std::max(400, 200 + cell_size(queries) * static_cast<int>(queries));
  return figure;
}

Figure heads_figure(const AttentionMaps& maps, const std::vector<std::size_t>& layers,
                    const std::vector<std::size_t>& heads) {
  Mosaic mosaic(maps, layers.size(), heads.size());
  for (std::size_t row = 0; row < layers.size(); ++row) {
    for (std::size_t column = 0; column < heads.size(); ++column)
      mosaic.put(maps, layers[row], heads[column], row, column);
  }
  const bool all = layers.size() == maps.layers && heads.size() == maps.heads;
  Figure figure = heat_map(
      {.axes = {.title = maps.name + (all ? " attention: every head" : " attention: the chosen heads"),
                .x = "head",
                .y = "layer"},
       .rows = labels_of(layers, mosaic.height),
       .columns = labels_of(heads, mosaic.width),
       .cells = mosaic.cells,
       .values = false,
       .low = 0,
       .high = dark_end(mosaic.cells, std::max(maps.queries.size(), maps.keys.size()))});
  const int rows = static_cast<int>(mosaic.cells.size()), columns = static_cast<int>(mosaic.cells[0].size());
  const int scale = std::clamp(1100 / std::max(rows, columns), 2, 12);
  figure.width = std::max(480, 200 + scale * columns);
  figure.height = std::max(320, 140 + scale * rows);
  return figure;
}

}  // namespace zoo
