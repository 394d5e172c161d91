#include "apps/training/parallel/local_steps.h"

#include <ATen/ops/zeros_like.h>

#include "data/base/error.h"

namespace zoo {
namespace {

NamedTensors prefixed(const char* prefix, const NamedTensors& tensors) {
  NamedTensors named;
  for (const auto& [name, tensor] : tensors) named.emplace_back(prefix + name, tensor.detach());
  return named;
}

void load(const SafetensorsFile& file, const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.sizes() != at::IntArrayRef(file.entry(name).shape))
      throw Error(file.path(), ": tensor '", name, "' has another shape than the model's parameter");
    tensor.copy_(file.tensor(name));
  }
}

}  // namespace

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

NamedTensors LocalSteps::state() const { return prefixed("outer_momentum.", momentum_); }
NamedTensors LocalSteps::weights() const { return prefixed("local.", weights_); }
void LocalSteps::load_state(const SafetensorsFile& file) const { load(file, state()); }
void LocalSteps::load_weights(const SafetensorsFile& file) const { load(file, weights()); }

}  // namespace zoo
