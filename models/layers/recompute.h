#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace zoo {

/// Computes a part of a model from its inputs, tensors in an order of its own.
using RecomputedPart = std::function<at::Tensor(const std::vector<at::Tensor>& inputs)>;

/// part(inputs), of which the backward pass keeps the inputs alone and computes the rest again (Chen et al.,
/// 2016, "Training deep nets with sublinear memory cost"). Dropout draws the same and autocast is as it was,
/// so that the gradients are bit for bit those of part(inputs) itself (but for parameters that several parts
/// read under autocast: their gradients are then summed in float32, not in the narrower type). `parameters`
/// are the leaves that the part reads besides its inputs; every input is defined.
at::Tensor recompute(const RecomputedPart& part, const std::vector<at::Tensor>& inputs,
                     const std::vector<at::Tensor>& parameters);

/// Has every TransformerStack in the module recompute its blocks in training: the activations of one block at
/// a time are in memory, for a second forward pass.
void recompute_blocks(torch::nn::Module& module, bool recomputes);

}  // namespace zoo
