#pragma once

/// @file
/// Use:
///
///     zoo::Embeddings embeddings(config);
///     const at::Tensor x = embeddings->forward({.ids = ids_of_rows});  // [B, T] to [B, T, C]

#include "models/layers/linear.h"
#include "models/layers/norm.h"

namespace zoo {

struct EmbeddingInputs {
  at::Tensor ids;  // [B, T]
  // [T], [1, T] or [B, T]. Undefined: past, past + 1, …, or as config.position_count says
  at::Tensor position_ids;
  at::Tensor token_type_ids;       // [B, T]. Undefined: all 0
  std::int64_t past = 0;           // number of cached positions before the first id
  const char* name = "input_ids";  // name of `ids` in messages
};

/// Embeds ids [B, T] as a stack's input [B, T, C]: config.embedding_scale token[id], plus token_type[segment]
/// and position[first_position() + p] if the configuration has those tables; then a norm
/// (config.embedding_norm: Devlin et al., 2019, section 3), dropout, and for a factorised embedding a
/// projection from E to C (Lan et al., 2020, section 3.1).
class EmbeddingsImpl : public torch::nn::Module {
 public:
  /// `shared` is the token table of other embeddings, whose parameter it stays; null: one of its own.
  explicit EmbeddingsImpl(const TransformerConfig& config, const Embedding& shared = nullptr);

  /// Throws c10::Error for wrong shapes, an id outside its table, a sequence that is too long, and positions
  /// or segments of a configuration without them.
  at::Tensor forward(const EmbeddingInputs& inputs) const;

  /// [first_position() + max_length(), E], learned or sinusoidal; undefined without a table.
  at::Tensor position_table() const { return position ? position->weight : sinusoids_; }

  Embedding token{nullptr};
  Embedding position{nullptr};    // empty unless positions are learned
  Embedding token_type{nullptr};  // empty without segments
  Norm norm{nullptr};             // empty unless config.embedding_norm
  Linear projection{nullptr};     // empty unless the embedding is factorised

 private:
  at::Tensor positions(const EmbeddingInputs& inputs) const;
  void check(const EmbeddingInputs& inputs) const;
  void check_positions(const EmbeddingInputs& inputs) const;

  TransformerConfig config_;
  at::Tensor sinusoids_;  // as position_table() when positions are sinusoidal
};
TORCH_MODULE(Embeddings);

}  // namespace zoo
