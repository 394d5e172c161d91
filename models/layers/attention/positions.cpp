#include "models/layers/attention/positions.h"

#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/pow.h>
#include <c10/util/Exception.h>

namespace zoo {
namespace {

// base^(-2i / size) for i in [0, size / 2).
at::Tensor inverse_frequencies(std::int64_t size, double base, const at::Device& device) {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
  return at::pow(base, at::arange(0, size, 2, options) / size).reciprocal();
}

at::Tensor scale_frequencies(const at::Tensor& frequencies, const RopeScaling& scaling) {
  if (scaling.kind == RopeScalingKind::kNone) return frequencies;
  const at::Tensor lowered = frequencies / scaling.factor;
  if (scaling.kind == RopeScalingKind::kLinear) return lowered;
  // Rotations within the original context: few for lowered frequencies, many for those that are kept.
  const at::Tensor turns = frequencies * static_cast<double>(scaling.original_max_positions) / (2 * M_PI);
  const double low = scaling.low_frequency_factor, high = scaling.high_frequency_factor;
  const at::Tensor kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
  return lowered * (1 - kept) + frequencies * kept;
}

}  // namespace

at::Tensor sinusoidal_positions(std::int64_t positions, std::int64_t hidden_size) {
  TORCH_CHECK(hidden_size % 2 == 0, "sinusoidal positions need an even hidden_size, got ", hidden_size);
  const at::Tensor position = at::arange(positions, at::kFloat).unsqueeze(1);
  const at::Tensor angles = position * inverse_frequencies(hidden_size, 10000.0, at::kCPU);
  at::Tensor table = at::empty({positions, hidden_size});
  table.slice(1, 0, hidden_size, 2).copy_(angles.sin());
  table.slice(1, 1, hidden_size, 2).copy_(angles.cos());
  return table;
}

RotaryTable RotaryTable::make(const at::Tensor& positions, std::int64_t head_dim, double theta,
                              const RopeScaling& scaling) {
  TORCH_CHECK(head_dim % 2 == 0, "rotary positions need an even head_dim, got ", head_dim);
  const at::Tensor frequencies =
      scale_frequencies(inverse_frequencies(head_dim, theta, positions.device()), scaling);
  at::Tensor angles = positions.to(at::kFloat).unsqueeze(-1) * frequencies;  // [T, D/2] or [B, T, D/2]
  angles = at::cat({angles, angles}, -1);
  if (angles.dim() == 3) angles = angles.unsqueeze(1);
  return {angles.cos(), angles.sin()};
}

at::Tensor RotaryTable::rotate(const at::Tensor& x) const {
  const auto halves = x.chunk(2, -1);
  const at::Tensor quarter_turned = at::cat({-halves[1], halves[0]}, -1);
  return x * cos.to(x.scalar_type()) + quarter_turned * sin.to(x.scalar_type());
}

}  // namespace zoo
