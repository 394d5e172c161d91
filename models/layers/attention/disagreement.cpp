#include "models/layers/attention/disagreement.h"

#include <ATen/ops/einsum.h>
#include <c10/util/Exception.h>

namespace zoo {
namespace {

void check(const at::Tensor& heads) {
  TORCH_CHECK(heads.dim() == 4, "heads are compared in [batch, heads, positions, size], got ", heads.sizes());
}

// The sum of <x_i, x_j> over all ordered pairs is |sum of x_i|^2: [B, T]
at::Tensor pair_sums(const at::Tensor& heads) { return heads.sum(1).square().sum(-1); }

at::Tensor mean_over_pairs(const at::Tensor& heads) {
  return pair_sums(heads).mean() / static_cast<double>(heads.size(1) * heads.size(1));
}

}  // namespace

at::Tensor position_similarity(const at::Tensor& weights) {
  check(weights);
  return mean_over_pairs(weights);
}

at::Tensor subspace_similarity(const at::Tensor& heads) {
  check(heads);
  const at::Tensor norm = heads.norm(2, {-1}, /*keepdim=*/true).clamp_min(1e-8);
  return mean_over_pairs(heads / norm);
}

at::Tensor head_overlap(const at::Tensor& weights) {
  check(weights);
  // Sums each pair i < j, not the square of the sum: without overlap the result is exactly 0.
  const at::Tensor products = at::einsum("bits,bjts->ij", {weights, weights});
  return products.triu(1).sum();
}

}  // namespace zoo
