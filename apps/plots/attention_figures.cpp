#include "apps/plots/attention_figures.h"

#include <algorithm>
#include <limits>

namespace zoo {
namespace {

constexpr std::size_t kMostValues = 14;    // at most so many tokens on an axis: cells show values
constexpr std::size_t kThumbnail = 40;     // maximum cells per side of a small map
constexpr std::size_t kGap = 3;            // empty cells between small maps
constexpr std::size_t kShortestSide = 10;  // minimum cells per side of a small map

int cell_size(std::size_t cells) {
  return std::clamp(static_cast<int>(1500 / cells), 15, 56);
}

// Side of a small map: one cell per token, shrunk for many tokens, enlarged for few.
std::size_t side_of(std::size_t tokens) {
  if (tokens > kThumbnail) return kThumbnail;
  return tokens * ((kShortestSide + tokens - 1) / tokens);
}

// Places small maps into a large one.
struct Mosaic {
  std::size_t height, width;  // of a small map
  std::vector<std::vector<double>> cells;

  Mosaic(const AttentionMaps& maps) : height(side_of(maps.queries.size())), width(side_of(maps.keys.size())) {
    const double nothing = std::numeric_limits<double>::quiet_NaN();
    cells.assign(maps.layers * (height + kGap) - kGap,
                 std::vector<double>(maps.heads * (width + kGap) - kGap, nothing));
  }

  void put(const AttentionMaps& maps, std::size_t layer, std::size_t head) {
    const std::size_t top = layer * (height + kGap), left = head * (width + kGap);
    const std::size_t rows = maps.queries.size(), columns = maps.keys.size();
    for (std::size_t y = 0; y < height; ++y) {
      for (std::size_t x = 0; x < width; ++x) cells[top + y][left + x] = 0;
    }
    for (std::size_t y = 0; y < std::max(height, rows); ++y) {
      for (std::size_t x = 0; x < std::max(width, columns); ++x) {
        double& cell =
            cells[top + y * height / std::max(height, rows)][left + x * width / std::max(width, columns)];
        const float weight = maps.weight(layer, head, y * rows / std::max(height, rows),
                                         x * columns / std::max(width, columns));
        cell = std::max(cell, static_cast<double>(weight));
      }
    }
  }
};

// Labels 0, 1, … at the middle of each small map.
std::vector<std::string> numbered(std::size_t count, std::size_t side) {
  std::vector<std::string> labels(count * (side + kGap) - kGap);
  for (std::size_t i = 0; i < count; ++i) labels[i * (side + kGap) + side / 2] = std::to_string(i);
  return labels;
}

}  // namespace

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
  Figure figure = heat_map(map);
  figure.width = std::max(480, 240 + cell_size(keys) * static_cast<int>(keys));
  figure.height = std::max(400, 200 + cell_size(queries) * static_cast<int>(queries));
  return figure;
}

Figure heads_figure(const AttentionMaps& maps) {
  Mosaic mosaic(maps);
  for (std::size_t layer = 0; layer < maps.layers; ++layer) {
    for (std::size_t head = 0; head < maps.heads; ++head) mosaic.put(maps, layer, head);
  }
  Figure figure =
      heat_map({.axes = {.title = maps.name + " attention: every head", .x = "head", .y = "layer"},
                .rows = numbered(maps.layers, mosaic.height),
                .columns = numbered(maps.heads, mosaic.width),
                .cells = mosaic.cells,
                .values = false,
                .low = 0,
                .high = 1});
  const int rows = static_cast<int>(mosaic.cells.size()), columns = static_cast<int>(mosaic.cells[0].size());
  const int scale = std::clamp(1100 / std::max(rows, columns), 2, 12);
  figure.width = std::max(480, 200 + scale * columns);
  figure.height = std::max(320, 140 + scale * rows);
  return figure;
}

}  // namespace zoo
