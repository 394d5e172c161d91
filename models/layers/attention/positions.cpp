#include "models/layers/attention/positions.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include "models/ops/attention.h"

namespace zoo {
namespace {

// base^(-2i / size) for i in [0, size / 2).
at::Tensor inverse_frequencies(std::int64_t size, double base, const at::Device& device,
                               at::ScalarType dtype = at::kFloat) {
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  return at::pow(base, at::arange(0, size, 2, options) / size).reciprocal();
}

// Share of each frequency that Llama 3 does not divide, by its rotations within the original context.
at::Tensor llama3_kept(const at::Tensor& frequencies, const RopeScaling& scaling) {
  const at::Tensor turns = frequencies * static_cast<double>(scaling.original_max_positions) / (2 * M_PI);
  const double low = scaling.low_frequency_factor, high = scaling.high_frequency_factor;
  return ((turns - low) / (high - low)).clamp(0.0, 1.0);
}

// The same of YaRN for each of `pairs` frequencies: 1 for the first, 0 for the last.
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

at::Tensor scale_frequencies(const at::Tensor& frequencies, double base, const RopeScaling& scaling) {
  if (scaling.kind == RopeScalingKind::kNone) return frequencies;
  const at::Tensor lowered = frequencies / scaling.factor;
  if (scaling.kind == RopeScalingKind::kLinear) return lowered;
  const at::Tensor kept = scaling.kind == RopeScalingKind::kYarn
                              ? yarn_kept(frequencies.size(0), base, scaling).to(frequencies.device())
                              : llama3_kept(frequencies, scaling);
  return lowered * (1 - kept) + frequencies * kept;
}

// Frequencies [..., size / 2] of sequences of these lengths [...].
at::Tensor frequencies_by_length(const at::Tensor& lengths, std::int64_t size, double theta,
                                 const RopeScaling& scaling) {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(lengths.device());
  const at::Tensor exponents = at::arange(0, size, 2, options) / size;
  if (scaling.kind == RopeScalingKind::kLongRope) {
    const at::Tensor is_long = lengths.unsqueeze(-1) > scaling.original_max_positions;
    const at::Tensor divisors = at::where(is_long, at::tensor(scaling.long_factors, options),
                                          at::tensor(scaling.short_factors, options));
    return (divisors * at::pow(theta, exponents)).reciprocal();
  }
  const double width = static_cast<double>(size), factor = scaling.factor;
  const at::Tensor reach = lengths.clamp_min(scaling.original_max_positions).to(at::kFloat);
  const at::Tensor stretched =
      factor * reach / static_cast<double>(scaling.original_max_positions) - (factor - 1);
  return at::pow((theta * stretched.pow(width / (width - 2))).unsqueeze(-1), exponents).reciprocal();
}

RotaryAngles angles_of(const at::Tensor& positions, std::int64_t head_dim, double theta,
                       const RopeScaling& scaling, std::int64_t length) {
  TORCH_CHECK(head_dim % 2 == 0, "rotary positions need an even head_dim, got ", head_dim);
  at::Tensor frequencies;  // [D/2] or [B, 1, D/2]
  if (scaling.depends_on_length()) {
    const at::Tensor lengths = length > 0 ? at::full({1}, length, positions.options())
                                          : positions.amax({-1}, /*keepdim=*/true) + 1;  // [1] or [B, 1]
    frequencies = frequencies_by_length(lengths, head_dim, theta, scaling);
    if (positions.dim() == 1) frequencies = frequencies.squeeze(0);
  } else {
    frequencies = scale_frequencies(inverse_frequencies(head_dim, theta, positions.device()), theta, scaling);
  }
  const bool scaled = scaling.kind == RopeScalingKind::kYarn || scaling.kind == RopeScalingKind::kLongRope;
  return {positions.to(at::kFloat).unsqueeze(-1) * frequencies, scaled ? scaling.attention_factor : 1.0};
}

RotaryTable table_of(const RotaryAngles& rotary) {
  at::Tensor angles = at::cat({rotary.angles, rotary.angles}, -1);
  if (angles.dim() == 3) angles = angles.unsqueeze(1);
  if (rotary.factor == 1) return {angles.cos(), angles.sin()};
  return {angles.cos() * rotary.factor, angles.sin() * rotary.factor};
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

RotaryAngles RotaryAngles::make(const at::Tensor& positions, const TransformerConfig& config, bool window,
                                std::int64_t length) {
  if (window && config.window_rope_theta > 0)
    return angles_of(positions, config.rotary_size(), config.window_rope_theta, {}, 0);
  return angles_of(positions, config.rotary_size(), config.rope_theta, config.rope_scaling, length);
}

RotaryTable RotaryTable::make(const at::Tensor& positions, std::int64_t head_dim, double theta,
                              const RopeScaling& scaling, std::int64_t length) {
  return table_of(angles_of(positions, head_dim, theta, scaling, length));
}

RotaryTable RotaryTable::make(const at::Tensor& positions, const TransformerConfig& config, bool window,
                              std::int64_t length) {
  return table_of(RotaryAngles::make(positions, config, window, length));
}

void check_longrope(const RopeScaling& scaling, std::size_t past, std::size_t length) {
  const auto original = static_cast<std::size_t>(scaling.original_max_positions);
  TORCH_CHECK(
      scaling.kind != RopeScalingKind::kLongRope || past == 0 || past > original || length <= original,
      "a sequence of ", past, " tokens in the cache cannot grow to ", length,
      ": its keys are rotated as longrope does within the original ", original, " positions");
}

at::Tensor RotaryTable::rotate(const at::Tensor& x) const {
  const std::int64_t dim = cos.size(-1);
  if (x.size(-1) > dim) return at::cat({rotate(x.slice(-1, 0, dim)), x.slice(-1, dim)}, -1);
  return ops::rotate(x, cos, sin);
}

at::Tensor relative_distances(std::int64_t queries, std::int64_t keys, const at::Device& device) {
  const auto options = at::TensorOptions().dtype(at::kLong).device(device);
  return at::arange(keys, options) - at::arange(keys - queries, keys, options).unsqueeze(1);
}

at::Tensor t5_buckets(const at::Tensor& distances, const BucketOptions& options) {
  const std::int64_t count = options.bidirectional ? options.buckets / 2 : options.buckets;
  const std::int64_t exact = count / 2;
  TORCH_CHECK(exact > 0 && options.max_distance > exact, "T5's buckets need a largest distance above ", exact,
              " for ", options.buckets, " buckets, got ", options.max_distance);
  const at::Tensor length = options.bidirectional ? distances.abs() : distances.clamp_max(0).neg();
  // float32 and this order round distances at a bucket's edge to the same side as their code.
  const double ranges = std::log(static_cast<double>(options.max_distance) / static_cast<double>(exact));
  const at::Tensor logarithm = (length.to(at::kFloat) / static_cast<double>(exact)).log();
  const at::Tensor far =
      (logarithm / ranges * static_cast<double>(count - exact)).clamp_min(0).to(at::kLong) + exact;
  const at::Tensor bucket = at::where(length < exact, length, far.clamp_max(count - 1));
  return options.bidirectional ? bucket + distances.gt(0).to(at::kLong) * count : bucket;
}

at::Tensor alibi_slopes(std::int64_t num_heads) {
  TORCH_CHECK(num_heads > 0, "ALiBi needs at least one head, got ", num_heads);
  std::int64_t power = 1;
  while (2 * power <= num_heads) power *= 2;
  std::vector<double> slopes;
  for (std::int64_t i = 1; i <= power; ++i) slopes.push_back(std::exp2(-8.0 * i / power));
  for (std::int64_t i = 1; static_cast<std::int64_t>(slopes.size()) < num_heads; i += 2)
    slopes.push_back(std::exp2(-4.0 * i / power));
  return at::tensor(slopes, at::kFloat);
}

at::Tensor alibi_bias(const at::Tensor& distances, std::int64_t num_heads) {
  const at::Tensor slopes = alibi_slopes(num_heads).to(distances.device()).view({1, -1, 1, 1});
  return distances.abs().neg().to(at::kFloat) * slopes;
}

}  // namespace zoo
