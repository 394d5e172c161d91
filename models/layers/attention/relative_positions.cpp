#include "models/layers/attention/relative_positions.h"

#include <cmath>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

namespace zoo {

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
  for (std::int64_t i = 1; static_cast<std::int64_t>(slopes.size()) < num_heads; i += 2) {
    slopes.push_back(std::exp2(-4.0 * i / power));
  }
  return at::tensor(slopes, at::kFloat);
}

at::Tensor alibi_bias(const at::Tensor& distances, std::int64_t num_heads) {
  const at::Tensor slopes = alibi_slopes(num_heads).to(distances.device()).view({1, -1, 1, 1});
  return distances.abs().neg().to(at::kFloat) * slopes;
}

}  // namespace zoo
