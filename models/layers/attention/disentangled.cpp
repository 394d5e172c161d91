#include "models/layers/attention/disentangled.h"

#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>

namespace zoo {

at::Tensor distance_rows(const at::Tensor& distances, std::int64_t k, std::int64_t max_distance) {
  const std::int64_t exact = k / 2;
  const at::Tensor length = distances.abs();
  // float32 and this order round distances at the edge of a range to the same side as DeBERTa's code.
  const auto logarithm = [&](const at::Tensor& x) {
    return (x.to(at::kFloat) / static_cast<double>(exact)).log();
  };
  const at::Tensor share =
      logarithm(length.clamp_min(1)) / logarithm(at::full({}, max_distance - 1, distances.options()));
  const at::Tensor far = (share * static_cast<double>(exact - 1)).ceil().to(at::kLong) + exact;
  const at::Tensor steps = at::where(length <= exact, length, far) * distances.sign();
  return (k - steps).clamp(0, 2 * k - 1);
}

at::Tensor disentangled_scores(const at::Tensor& q, const at::Tensor& k, const at::Tensor& vector_queries,
                               const at::Tensor& vector_keys, const at::Tensor& rows, double scale) {
  const auto of_pairs = [](const at::Tensor& x, const at::Tensor& vectors, const at::Tensor& index) {
    const at::Tensor products = at::matmul(x, vectors.transpose(-2, -1));  // [B, H, T, 2 k]
    return products.gather(-1, index.expand({x.size(0), x.size(1), -1, -1}));
  };
  const at::Tensor to_position = of_pairs(q, vector_keys, rows);
  const at::Tensor to_content = of_pairs(k, vector_queries, rows.t());
  return (to_position + to_content.transpose(-2, -1)) * scale;
}

}  // namespace zoo
