#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/layers/transformer_config.h"

namespace zoo::inference {

/// Tables by positions alone: angles of rotary positions, biases of scores, and rows of distance vectors.
class PackedPositions {
 public:
  /// Cosines and sines [positions, P] of rotary positions.
  struct Angles {
    std::vector<float> cos, sin;
  };

  explicit PackedPositions(const TransformerConfig& config) : config_(config) {}

  /// Adds a table [buckets, H] of position biases (T5): one for all layers, or one for each.
  void add_bias_table(const at::Tensor& table) { bias_tables_.push_back(table); }

  /// Makes the tables at least this long; twice as long, so that a growing sequence seldom needs new ones.
  void grow_to(std::size_t positions);

  /// Angles of a sequence of `length` positions, in layers with or without a window. They stay the same for a
  /// sequence, because its cached keys are rotated by them.
  const Angles& angles(std::size_t length, bool window) const;

  /// Biases that a query at `position` adds to the scores of the keys from position 0 on; null: none. Those
  /// of the next query begin one number earlier, those of the next head bias_row() numbers later.
  const float* biases(std::size_t layer, std::size_t head, std::size_t position) const;
  std::size_t bias_row() const { return 2 * positions_ - 1; }

  /// The vectors' row of key position - query position d is at element d; only kDisentangled.
  const std::int32_t* rows_by_distance() const { return distance_rows_.data() + positions_ - 1; }

 private:
  TransformerConfig config_;
  std::vector<at::Tensor> bias_tables_;
  Angles angles_[2];    // of layers without and with a window
  Angles long_angles_;  // of sequences beyond the original context (kLongRope)
  std::vector<std::vector<float>>
      biases_;  // [H, 2 positions - 1] of each table, by key position - query position
  std::vector<std::int32_t> distance_rows_;  // [2 positions - 1]
  std::size_t positions_ = 0;                // length of the tables
};

}  // namespace zoo::inference
