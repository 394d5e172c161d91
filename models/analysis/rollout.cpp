#include "models/analysis/rollout.h"

#include <ATen/ops/eye.h>
#include <ATen/ops/stack.h>

namespace zoo::analysis {

at::Tensor attention_rollout(const std::vector<at::Tensor>& attentions) {
  TORCH_CHECK(!attentions.empty(), "the rollout needs a layer's attention");
  std::vector<at::Tensor> rollouts;
  for (const at::Tensor& weights : attentions) {
    TORCH_CHECK(
        weights.dim() == 4 && weights.size(2) == weights.size(3) && weights.size(2) == attentions[0].size(2),
        "the rollout needs attention of positions to themselves, [B, H, T, T], got ", weights.sizes());
    const at::Tensor mean = weights.to(at::kFloat).mean(1);  // [B, T, T]
    const at::Tensor mixed = 0.5 * mean + 0.5 * at::eye(mean.size(-1), mean.options());
    // A row whose keys are all hidden has no weights, only the residual connection.
    const at::Tensor layer = mixed / mixed.sum(-1, /*keepdim=*/true);
    rollouts.push_back(rollouts.empty() ? layer : layer.matmul(rollouts.back()));
  }
  return at::stack(rollouts);
}

}  // namespace zoo::analysis
