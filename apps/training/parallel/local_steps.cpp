#include "apps/training/parallel/local_steps.h"

#include <ATen/ops/zeros_like.h>

namespace zoo {

// A moving average that keeps nothing of before is a copy.
LocalSteps::LocalSteps(const torch::nn::Module& module, const LocalStepsOptions& options, Ranks* ranks)
    : options_(options), ranks_(ranks), common_(module, /*decay=*/0) {
  for (const auto& entry : module.named_parameters()) {
    if (!entry.value().requires_grad()) continue;
    weights_.emplace_back(entry.key(), entry.value());
    momentum_.emplace_back(entry.key(), at::zeros_like(entry.value().detach()));
  }
}

void LocalSteps::after_update(std::int64_t done) {
  if (in_round(done)) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> differences;
  for (std::size_t i = 0; i < weights_.size(); ++i)
    differences.push_back(common_.state()[i].second - weights_[i].second);
  if (ranks_ != nullptr) ranks_->average(differences);
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    at::Tensor weight = weights_[i].second;
    // common - d; a single process has this already, to the bit.
    if (ranks_ != nullptr) at::sub_out(weight, common_.state()[i].second, differences[i]);
    momentum_[i].second.mul_(options_.momentum).add_(differences[i]);
    weight.add_(differences[i], 1 - options_.learning_rate)
        .sub_(momentum_[i].second, options_.learning_rate * options_.momentum);
  }
  common_.update();
}

NamedTensors LocalSteps::state(std::int64_t done) const {
  NamedTensors state;
  for (const auto& [name, tensor] : momentum_) state.emplace_back("outer_momentum." + name, tensor);
  if (in_round(done))
    for (const auto& [name, tensor] : weights_) state.emplace_back("local." + name, tensor.detach());
  return state;
}

}  // namespace zoo
