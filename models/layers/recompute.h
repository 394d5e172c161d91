#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace zoo {

/// Computes part of a model from its input tensors, in an order of its own.
using RecomputedPart = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>;

/// Gradient checkpointing: returns part(inputs), keeps only the inputs for the backward pass and computes the
/// rest again (Chen et al., 2016, "Training deep nets with sublinear memory cost"). Dropout and autocast
/// repeat, so that the gradients equal those of part(inputs) bit for bit; under autocast alone, those of
/// parameters that several parts read are summed in float32, not in the narrower type. `parameters` are the
/// leaves that the part reads besides its inputs; every input is defined.
std::vector<at::Tensor> recompute(const RecomputedPart& part, const std::vector<at::Tensor>& inputs,
                                  const std::vector<at::Tensor>& parameters);

/// Keeps the weights of parts of a model elsewhere while nobody computes with them.
class PartWeights {
 public:
  virtual ~PartWeights() = default;
  virtual void take(const std::vector<at::Tensor>& weights) = 0;
  virtual void give_back(const std::vector<at::Tensor>& weights) noexcept = 0;
};

/// Who keeps the weights of the blocks that this thread computes; null: they lie where they are.
PartWeights*& part_weights();

/// The weights are there while it lives.
class PartScope {
 public:
  PartScope(PartWeights* keeper, const std::vector<at::Tensor>& weights)
      : keeper_(keeper), weights_(weights) {
    if (keeper_ != nullptr) keeper_->take(weights_);
  }
  ~PartScope() {
    if (keeper_ != nullptr) keeper_->give_back(weights_);
  }
  PartScope(const PartScope&) = delete;
  PartScope& operator=(const PartScope&) = delete;

 private:
  PartWeights* keeper_;
  const std::vector<at::Tensor> weights_;
};

/// Switches gradient checkpointing of every TransformerStack in the module: where gradients are computed,
/// the activations of one block at a time are kept, at the cost of a second forward pass.
void recompute_blocks(torch::nn::Module& module, bool recomputes);

}  // namespace zoo
