#pragma once

#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/inference/memory.h"
#include "models/kernels/packed/inference_kernels.h"
#include "models/kernels/parallel.h"
#include "models/layers/linear.h"

namespace zoo::inference {

using kernels::WeightType;

/// A weight [out, in] and its bias [out], packed (kernels/packed/packed_weight.h). Of the original nothing is
/// kept, and where it lies in a mapped file its pages are given back while it is packed: at no time are there
/// two whole copies in memory.
class PackedLinear {
 public:
  PackedLinear() = default;
  PackedLinear(const at::Tensor& weight, const at::Tensor& bias, WeightType type);
  /// The same; with `release` the module is left without its weight.
  PackedLinear(LinearImpl& linear, WeightType type, bool release = false);

  const kernels::PackedWeight& weight() const { return weight_; }
  const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); }
  std::size_t bytes() const { return memory_.size() + (scales_.size() + bias_.size()) * sizeof(float); }

 private:
  Memory memory_;
  std::vector<float> scales_, bias_;
  kernels::PackedWeight weight_;
};

/// The outputs that a thread of the team multiplies: whole panels where there are enough of them.
Team::Part outputs_of(const Team& team, const kernels::PackedWeight& weight);

/// What this thread reads of a weight, where so few rows pass that they wait for memory: nothing for more of
/// them, or without a weight. For Team::wait().
std::span<const std::byte> ahead(const Team& team, const PackedLinear* linear, std::size_t rows);

/// The elements of a tensor as float32; none for an undefined one.
std::vector<float> floats_of(const at::Tensor& tensor);

}  // namespace zoo::inference
