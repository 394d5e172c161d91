#pragma once

#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/checkpoint/stored_weights.h"
#include "models/inference/memory.h"
#include "models/kernels/packed/inference_kernels.h"
#include "models/kernels/parallel.h"
#include "models/layers/linear.h"

namespace zoo::inference {

using kernels::WeightType;

struct PackOptions {
  WeightType weights = WeightType::kFloat32;
  WeightType cache = WeightType::kFloat32;  // of keys and values: kFloat32, kBfloat16 or kInt8
  bool release = false;  // remove packed weights from the modules, which makes them unusable
  std::shared_ptr<const StoredWeights> stored = nullptr;  // matrices that the modules lack, if not null

  /// A module's parameter, wherever its numbers are.
  WeightRows rows_of(const at::Tensor& parameter) const {
    return stored ? stored->rows_of(parameter) : WeightRows(parameter);
  }
};

/// A weight [out, in] and its bias [out], packed (kernels/packed/packed_weight.h). Keeps nothing of the
/// original. Threads read a panel's rows at a time; if these are in a mapped file, packing gives its pages
/// back, so that memory never holds two whole copies.
class PackedLinear {
 public:
  PackedLinear() = default;
  PackedLinear(const WeightRows& weight, const at::Tensor& bias, WeightType type);
  /// Rows [first, last) of a weight, without a bias.
  PackedLinear(const WeightRows& weight, std::int64_t first, std::int64_t last, WeightType type);
  PackedLinear(LinearImpl& linear, const PackOptions& options);

  const kernels::PackedWeight& weight() const { return weight_; }
  const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); }
  std::size_t bytes() const { return memory_.size() + (scales_.size() + bias_.size()) * sizeof(float); }

 private:
  void pack(const WeightRows& weight, std::int64_t first, std::int64_t last, WeightType type);

  Memory memory_;
  std::vector<float> scales_, bias_;
  kernels::PackedWeight weight_;
};

/// Rows of a module's weight with its low-rank term, if it has one, wherever its numbers are.
WeightRows rows_of(const LinearImpl& linear, const PackOptions& options);

/// Outputs that a thread of the team computes: whole panels if there are enough of them.
Team::Part outputs_of(const Team& team, const kernels::PackedWeight& weight);

/// Bytes of a weight that this thread reads next, for prefetching in Team::wait(). Only few rows wait for
/// memory: returns nothing for more rows or without a weight.
std::span<const std::byte> ahead(const Team& team, const PackedLinear* linear, std::size_t rows);

/// Elements of a tensor as float32; empty for an undefined one.
std::vector<float> floats_of(const at::Tensor& tensor);

}  // namespace zoo::inference
