#pragma once

/// @file
/// Use:
///
///     zoo::Linear linear(/*in_features=*/128, /*out_features=*/65);
///     const at::Tensor y = linear->forward(x);
///     zoo::Embedding table(/*num_embeddings=*/65, /*embedding_dim=*/128);
///     const at::Tensor rows = table->forward(ids_of_rows);

#include <memory>
#include <optional>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "models/ops/linear.h"

namespace zoo {

/// A term scale B A that is added to a weight W [out, in]: A [rank, in], B [out, rank] (LoRA: Hu et al.,
/// 2022). With magnitudes m [out] the rows of the sum V become m V / |V| (DoRA: Liu et al., 2024); as in PEFT
/// the norms |V| are constants for gradients.
struct LowRankTerm {
  at::Tensor a, b;
  double scale = 1;
  at::Tensor magnitude = {};  // undefined: LoRA
  /// Of a weight that files hold in several (queries, keys and values), each with a term of its own: 1 where
  /// B [out, rank] has such a block, which alone is trained, else 0. Undefined: all of B.
  at::Tensor mask = {};

  at::Tensor masked_b() const { return mask.defined() ? b * mask : b; }
};

/// A weight [out, in] that is never trained, in a smaller number format (QLoRA: Dettmers et al., 2023).
class FrozenWeight {
 public:
  FrozenWeight(std::int64_t outputs, std::int64_t inputs) : outputs(outputs), inputs(inputs) {}
  virtual ~FrozenWeight() = default;

  /// Computes rows [first, last) in float32. `first` must be a multiple of kUnit.
  virtual at::Tensor floats(std::int64_t first, std::int64_t last) const = 0;
  at::Tensor floats() const { return floats(0, outputs); }
  virtual std::size_t bytes() const = 0;

  static constexpr std::int64_t kUnit = 64;
  const std::int64_t outputs, inputs;
};

/// x W^T + b, with a residual connection if it ends a sublayer: x [*, in] to [*, out]; weight [out, in], bias
/// [out] or undefined.
class LinearImpl : public torch::nn::Module {
 public:
  LinearImpl(std::int64_t in_features, std::int64_t out_features, bool with_bias = true);

  at::Tensor forward(const at::Tensor& x, const ops::Residual& residual = {}) const;

  /// The weight with its low-rank term, if it has one.
  at::Tensor adapted_weight() const;

  /// True without a low-rank term and a frozen weight: W is `weight`.
  bool is_plain() const { return !low_rank && !frozen; }

  at::Tensor weight, bias;
  std::optional<LowRankTerm> low_rank;
  std::shared_ptr<const FrozenWeight> frozen;  // in place of `weight`, which then has only its shape

 private:
  at::Tensor project(const at::Tensor& x, const at::Tensor& added, const ops::Residual& residual) const;
  at::Tensor sum() const;          // of weight and term: V
  at::Tensor row_factors() const;  // m / |V| [out]
};
TORCH_MODULE(Linear);

/// Embedding table: ids [*] to [*, embedding_dim]; weight [num_embeddings, embedding_dim].
/// The row of `padding_id` gets no gradient; -1: every row gets its own.
/// Throws c10::Error naming an id outside [0, num_embeddings).
class EmbeddingImpl : public torch::nn::Module {
 public:
  EmbeddingImpl(std::int64_t num_embeddings, std::int64_t embedding_dim, std::int64_t padding_id = -1);

  at::Tensor forward(const at::Tensor& ids) const;

  std::int64_t padding_id() const { return padding_id_; }

  at::Tensor weight;

 private:
  std::int64_t padding_id_;
};
TORCH_MODULE(Embedding);

}  // namespace zoo
