#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace zoo {

/// What all heads of one kind of attention look at, in one text or from one text to another.
struct AttentionMaps {
  std::string name;  // "encoder", "decoder", "cross"
  std::vector<std::string> queries, keys;
  std::size_t layers = 0, heads = 0;
  std::vector<float> weights;  // [layers][heads][queries][keys], each in [0, 1]

  /// The map [queries][keys] of one head.
  std::span<const float> head(std::size_t layer, std::size_t head) const;
  float weight(std::size_t layer, std::size_t head, std::size_t query, std::size_t key) const;
  /// The key that a query looks at most, the first of equals.
  std::size_t strongest_key(std::size_t layer, std::size_t head, std::size_t query) const;
};

/// How a map spreads and along which line it lies: means over the queries.
struct HeadPattern {
  double entropy = 0;  // in bits: 0 where each query sees one key, log2(S) where it sees all S alike
  double itself = 0, previous = 0, next = 0;  // weights; NaN where there is no such pair of positions
  double first = 0;                           // weight of key 0
};

/// Of a map with rows of `keys` weights. `square`: queries and keys are the same positions.
HeadPattern pattern_of(std::span<const float> map, std::size_t keys, bool square);
HeadPattern pattern_of(const AttentionMaps& maps, std::size_t layer, std::size_t head);

/// A token as a label: a space as ␣, a line's end as ↵, a tab as ⇥, other control characters as U+FFFD.
std::string token_label(const std::string& token);
std::vector<std::string> token_labels(const std::vector<std::string>& tokens);

}  // namespace zoo
