#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/plots/figures.h"

namespace zoo {

/// Attention of all heads of one kind, within a text or from one text to another.
struct AttentionMaps {
  std::string name;  // "encoder", "decoder", "cross"
  std::vector<std::string> queries, keys;
  std::size_t layers = 0, heads = 0;
  bool causal = false;                                     // keys after their query are masked
  std::vector<std::size_t> special_queries, special_keys;  // positions of special tokens
  std::vector<float> weights;                              // [layers][heads][queries][keys], each in [0, 1]

  /// The map [queries][keys] of one head.
  std::span<const float> head(std::size_t layer, std::size_t head) const;
  float weight(std::size_t layer, std::size_t head, std::size_t query, std::size_t key) const;
  /// The key with the query's largest weight, the first of equals.
  std::size_t strongest_key(std::size_t layer, std::size_t head, std::size_t query) const;
};

/// Spread and direction of a map: means over the queries.
struct HeadPattern {
  double entropy = 0;  // in bits: 0 if each query sees one key, log2(S) if it sees all S equally
  double itself = 0, previous = 0, next = 0;  // weights; NaN without such a pair of positions
  double first = 0;                           // weight of key 0
  /// Of the queries whose token stood before: weight of its earlier places, and of the places right after
  /// these (induction heads: Olsson et al., 2022). NaN without such a query.
  double duplicate = 0, induction = 0;

  /// All of these by name.
  std::vector<std::pair<const char*, double>> numbers() const {
    return {{"entropy", entropy}, {"itself", itself},       {"previous", previous},  {"next", next},
            {"first", first},     {"duplicate", duplicate}, {"induction", induction}};
  }
};

/// The pattern of a map with `keys` weights per row, without duplicate and induction, for which it has no
/// tokens. `square`: queries and keys are the same positions.
HeadPattern pattern_of(std::span<const float> map, std::size_t keys, bool square);
HeadPattern pattern_of(const AttentionMaps& maps, std::size_t layer, std::size_t head);

/// Token as a label: a space as ␣, a newline as ↵, a tab as ⇥, other control characters as U+FFFD.
std::string token_label(const std::string& token);
std::vector<std::string> token_labels(const std::vector<std::string>& tokens);

/// One head with tokens on both axes; the cells of a short text show their values.
Figure head_figure(const AttentionMaps& maps, std::size_t layer, std::size_t head);

/// All heads as small maps, one row per layer. Of a long text a cell shows the largest weight of its part.
Figure heads_figure(const AttentionMaps& maps, const std::vector<std::size_t>& layers,
                    const std::vector<std::size_t>& heads);

/// Title, description and initial head of the page.
struct AttentionPage {
  std::string model, text;
  std::optional<std::size_t> layer, head;  // none: the page chooses, and explains how
};

/// Maximum number of weights in a page; the browser stores each in a byte.
constexpr std::size_t kMostPageWeights = 48'000'000;

/// A self-contained HTML page: a grid of all heads, and one head with its heat map and lines between the
/// tokens. Weights have 256 levels, coded (encode_levels()) and in base64; texts are data, never markup.
std::string attention_page(const AttentionPage& page, std::span<const AttentionMaps> maps);

/// Compresses the levels of maps [rows][columns] by an adaptive binary range coder (Martin, 1979), LZMA's
/// variant: each is coded as "above 0", "above 1" and its eight bits, with probabilities that depend on the
/// levels to the left and above. `causal`: those right of the diagonal are 0 and omitted.
/// apps/plots/page/levels.js decodes it.
std::string encode_levels(std::span<const std::uint8_t> levels, std::size_t rows, std::size_t columns,
                          bool causal = false);

}  // namespace zoo
