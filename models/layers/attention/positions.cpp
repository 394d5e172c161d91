#include "models/layers/attention/positions.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/pow.h>
#include <c10/util/Exception.h>

namespace zoo {
namespace {

// base^(-2i / size) for i in [0, size / 2).
at::Tensor inverse_frequencies(std::int64_t size, double base, const at::Device& device,
                               at::ScalarType dtype = at::kFloat) {
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  return at::pow(base, at::arange(0, size, 2, options) / size).reciprocal();
}

}  // namespace

at::Tensor yarn_kept(std::int64_t pairs, double base, const RopeScaling& scaling) {
  const auto original = static_cast<double>(scaling.original_max_positions);
  // Index of the pair that makes this many rotations within the original context.
  const auto index_of = [&](double rotations) {
    return static_cast<double>(pairs) * std::log(original / (rotations * 2 * M_PI)) / std::log(base);
  };
  double low = index_of(scaling.beta_fast), high = index_of(scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(2 * pairs - 1));
  if (high == low) high += 0.001;
  return 1 - ((at::arange(pairs, at::kFloat) - low) / (high - low)).clamp(0.0, 1.0);
}

namespace {

at::Tensor scale_frequencies(const at::Tensor& frequencies, double base, const RopeScaling& scaling) {
  if (scaling.kind == RopeScalingKind::kNone) return frequencies;
  const at::Tensor lowered = frequencies / scaling.factor;
  if (scaling.kind == RopeScalingKind::kLinear) return lowered;
  if (scaling.kind == RopeScalingKind::kYarn) {
    const at::Tensor kept = yarn_kept(frequencies.size(0), base, scaling).to(frequencies.device());
    return lowered * (1 - kept) + frequencies * kept;
  }
  // Rotations within the original context: few for lowered frequencies, many for those that are kept.
  const at::Tensor turns = frequencies * static_cast<double>(scaling.original_max_positions) / (2 * M_PI);
  const double low = scaling.low_frequency_factor, high = scaling.high_frequency_factor;
  const at::Tensor kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
  return lowered * (1 - kept) + frequencies * kept;
}

}  // namespace

at::Tensor sinusoidal_positions(std::int64_t positions, std::int64_t hidden_size, SinusoidOrder order) {
  TORCH_CHECK(hidden_size % 2 == 0, "sinusoidal positions need an even hidden_size, got ", hidden_size);
  TORCH_CHECK(order != SinusoidOrder::kFairseq || hidden_size > 2,
              "fairseq's sinusoidal positions need a hidden_size above 2, got ", hidden_size);
  // Each kind of table has the rounding of the code that it comes from.
  const auto dtype = order == SinusoidOrder::kHalves ? at::kDouble : at::kFloat;
  const at::Tensor position = at::arange(positions, dtype).unsqueeze(1);
  const std::int64_t half = hidden_size / 2;
  const at::Tensor frequencies =
      order == SinusoidOrder::kFairseq
          ? (at::arange(half, at::kFloat) * -(std::log(10000.0) / static_cast<double>(half - 1))).exp()
          : inverse_frequencies(hidden_size, 10000.0, at::kCPU, dtype);
  const at::Tensor angles = position * frequencies;
  if (order != SinusoidOrder::kInterleaved) return at::cat({angles.sin(), angles.cos()}, 1).to(at::kFloat);
  at::Tensor table = at::empty({positions, hidden_size});
  table.slice(1, 0, hidden_size, 2).copy_(angles.sin());
  table.slice(1, 1, hidden_size, 2).copy_(angles.cos());
  return table;
}

RotaryTable RotaryTable::make(const at::Tensor& positions, std::int64_t head_dim, double theta,
                              const RopeScaling& scaling) {
  TORCH_CHECK(head_dim % 2 == 0, "rotary positions need an even head_dim, got ", head_dim);
  const at::Tensor frequencies =
      scale_frequencies(inverse_frequencies(head_dim, theta, positions.device()), theta, scaling);
  at::Tensor angles = positions.to(at::kFloat).unsqueeze(-1) * frequencies;  // [T, D/2] or [B, T, D/2]
  angles = at::cat({angles, angles}, -1);
  if (angles.dim() == 3) angles = angles.unsqueeze(1);
  if (scaling.kind != RopeScalingKind::kYarn) return {angles.cos(), angles.sin()};
  return {angles.cos() * scaling.attention_factor, angles.sin() * scaling.attention_factor};
}

RotaryTable RotaryTable::make(const at::Tensor& positions, const TransformerConfig& config, bool window) {
  if (window && config.window_rope_theta > 0)
    return make(positions, config.rotary_size(), config.window_rope_theta);
  return make(positions, config.rotary_size(), config.rope_theta, config.rope_scaling);
}

at::Tensor RotaryTable::rotate(const at::Tensor& x) const {
  const std::int64_t dim = cos.size(-1);
  if (x.size(-1) > dim) return at::cat({rotate(x.slice(-1, 0, dim)), x.slice(-1, dim)}, -1);
  const auto halves = x.chunk(2, -1);
  const at::Tensor quarter_turned = at::cat({-halves[1], halves[0]}, -1);
  return x * cos.to(x.scalar_type()) + quarter_turned * sin.to(x.scalar_type());
}

}  // namespace zoo
