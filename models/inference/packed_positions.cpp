#include "models/inference/packed_positions.h"

#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>

#include "models/inference/packed_linear.h"
#include "models/layers/attention/disentangled.h"
#include "models/layers/attention/positions.h"

namespace zoo::inference {

void PackedPositions::grow_to(std::size_t positions) {
  if (positions <= positions_) return;
  const bool rotary = config_.position == PositionKind::kRotary;
  const bool disentangled = config_.position == PositionKind::kDisentangled;
  if (!rotary && !disentangled && !config_.has_position_bias()) return;
  positions_ = 2 * positions;
  const auto count = static_cast<std::int64_t>(positions_);
  if (rotary) {
    // Not at::cos: with more threads than cores, its last bit depends on how MKL divides the work, and int8
    // activations round another way for it.
    const auto angles_for = [&](std::int64_t length, bool window) {
      const RotaryAngles made = RotaryAngles::make(at::arange(count), config_, window, length);
      const auto factor = static_cast<float>(made.factor);
      Angles result{.cos = floats_of(made.angles), .sin = {}};
      result.sin = result.cos;
      for (float& angle : result.cos) angle = std::cos(angle) * factor;
      for (float& angle : result.sin) angle = std::sin(angle) * factor;
      return result;
    };
    for (const bool window : {false, true}) {
      if (window && config_.sliding_window == 0) break;
      angles_[window] = angles_for(1, window);
    }
    if (config_.rope_scaling.kind == RopeScalingKind::kLongRope)
      long_angles_ = angles_for(config_.rope_scaling.original_max_positions + 1, false);
    return;
  }
  const at::Tensor distances = at::arange(1 - count, count);
  if (disentangled) {
    const at::Tensor rows =
        distance_rows(distances, config_.relative_buckets, config_.relative_max_distance).to(at::kInt);
    distance_rows_.assign(rows.const_data_ptr<std::int32_t>(),
                          rows.const_data_ptr<std::int32_t>() + rows.numel());
    return;
  }
  if (config_.position == PositionKind::kAlibi) {
    biases_ = {floats_of(alibi_bias(distances, config_.num_heads))};
    return;
  }
  const BucketOptions options{.buckets = config_.relative_buckets,
                              .max_distance = config_.relative_max_distance,
                              .bidirectional = config_.shape == Shape::kEncoder};
  const at::Tensor buckets = t5_buckets(distances, options);
  biases_.clear();
  for (const at::Tensor& table : bias_tables_)
    biases_.push_back(floats_of(at::embedding(table, buckets).t()));
}

const PackedPositions::Angles& PackedPositions::angles(std::size_t length, bool window) const {
  const bool own_base = window && config_.window_rope_theta > 0;
  if (config_.rope_scaling.kind != RopeScalingKind::kLongRope || own_base) return angles_[window];
  const auto original = static_cast<std::size_t>(config_.rope_scaling.original_max_positions);
  return length > original ? long_angles_ : angles_[window];
}

const float* PackedPositions::biases(std::size_t layer, std::size_t head, std::size_t position) const {
  if (biases_.empty()) return nullptr;
  return biases_[layer % biases_.size()].data() + head * bias_row() + positions_ - 1 - position;
}

}  // namespace zoo::inference
