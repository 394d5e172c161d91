#pragma once

/// @file
/// Use:
///
///     zoo::Norm norm(zoo::NormKind::kRmsNorm, /*size=*/128, /*eps=*/1e-5, /*with_bias=*/false);
///     const at::Tensor y = norm->forward(x);  // over the last dimension

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "models/layers/transformer_config.h"

namespace zoo {

/// LayerNorm (Ba et al., 2016): (x - mean) / sqrt(var + eps) * weight + bias over the last dimension;
/// RMSNorm (Zhang and Sennrich, 2019): x / sqrt(mean(x^2) + eps) * weight, or * (1 + weight). x [*, C] to [*,
/// C].
class NormImpl : public torch::nn::Module {
 public:
  NormImpl(NormKind kind, std::int64_t size, double eps, bool with_bias);
  /// The norm that `config` asks for, over its hidden_size.
  explicit NormImpl(const TransformerConfig& config);

  at::Tensor forward(const at::Tensor& x) const;

  /// The norm of an x that a residual connection reads too, and an x for that connection, with which the
  /// backward pass takes one pass less.
  ops::NormedResidual branch(const at::Tensor& x) const;

  /// Makes the norm multiply by one and add zero.
  void reset();

  at::Tensor weight, bias;  // of kPlainRmsNorm a buffer of ones

 private:
  ops::NormOptions options_;
};
TORCH_MODULE(Norm);

}  // namespace zoo
