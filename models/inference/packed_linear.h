#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "models/inference/memory.h"
#include "models/kernels/inference_kernels.h"
#include "models/layers/linear.h"

namespace zoo::inference {

using kernels::WeightType;

/// A weight [out, in] and its bias [out], packed (kernels/packed_weight.h). Of the original nothing is kept,
/// and where it lies in a mapped file its pages are given back while it is packed: at no time are there two
/// whole copies in memory.
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

/// The elements of a tensor as float32; none for an undefined one.
std::vector<float> floats_of(const at::Tensor& tensor);

}  // namespace zoo::inference
