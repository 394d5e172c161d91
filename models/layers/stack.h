#pragma once

/// @file
/// Use:
///
///     zoo::TransformerStack stack(config);
///     const zoo::StackOutput output = stack->forward({.embeddings = x, .output_attentions = true});
///     zoo::EncoderDecoderStack stacks(config);  // of Shape::kEncoderDecoder
///     const auto both = stacks->forward({.encoder_embeddings = source, .decoder_embeddings = x});
///     const at::Tensor hidden = both.decoder.hidden;  // [B, T, C]

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <torch/nn/modules/container/modulelist.h>

#include "models/layers/block.h"
#include "models/layers/interventions.h"

namespace zoo {

struct StackInputs {
  at::Tensor embeddings;      // [B, T, C]
  at::Tensor attention_mask;  // [B, S], 1 keeps; S counts cached positions too. Undefined: nothing is hidden.
  at::Tensor positions;    // [T] or [B, T], for rotary positions. Undefined: 0, 1, … after the cached ones.
  at::Tensor memory;       // [B, M, C], attended to by a decoder with cross-attention
  at::Tensor memory_mask;  // [B, M], 1 keeps. Undefined: nothing is hidden.
  std::vector<std::int64_t> documents;  // AttentionMask::documents of a decoder
  KeyValueCache* cache = nullptr;
  bool output_hidden_states = false;
  bool output_attentions = false;
  bool output_heads = false;
  bool output_activations = false;
  bool output_router_logits = false;
  std::vector<Intervention> interventions;  // those on another stack have no effect
};

/// `inputs` that ask for the same outputs of the layers as `asked`, and have its interventions.
template <class Inputs, class Asked> Inputs observing(Inputs inputs, const Asked& asked) {
  inputs.output_hidden_states = asked.output_hidden_states;
  inputs.output_attentions = asked.output_attentions;
  inputs.output_heads = asked.output_heads;
  inputs.output_activations = asked.output_activations;
  inputs.interventions = asked.interventions;
  return inputs;
}

struct StackOutput {
  at::Tensor hidden;                          // [B, T, C], after the last norm
  std::vector<at::Tensor> hidden_states;      // num_layers + 1: embeddings, …, after the final norm
  std::vector<at::Tensor> attentions;         // num_layers of [B, H, T, S]
  std::vector<at::Tensor> cross_attentions;   // num_layers of [B, H, T, M]; decoders with a memory only
  std::vector<HeadRecord> heads;              // num_layers, of self-attention
  std::vector<LayerActivations> activations;  // num_layers
  std::vector<at::Tensor> router_logits;      // of each layer with experts, [B T, E]
};

/// Computes a stack's forward pass in place of its modules, from weights of its own.
class StackEngine {
 public:
  virtual ~StackEngine() = default;

  /// Throws c10::Error for inputs that ask for something which the engine lacks.
  virtual StackOutput forward(const StackInputs& inputs) = 0;
};

/// num_layers blocks, each left out of a training step with the probability layer_dropout, and a final norm
/// for pre-LN (kPre). In an encoder all positions see one another; in a decoder a position sees itself and
/// earlier ones, and a memory if config.cross_attention.
class TransformerStackImpl : public torch::nn::Module {
 public:
  /// Throws c10::Error if the configuration is invalid or asks for something that the stack lacks.
  explicit TransformerStackImpl(const TransformerConfig& config);

  StackOutput forward(const StackInputs& inputs);

  /// Lets `engine` compute forward() from now on.
  void run_on(std::shared_ptr<StackEngine> engine) { engine_ = std::move(engine); }

  const TransformerConfig& config() const { return config_; }

  /// Block of a layer in [0, num_layers).
  BlockImpl& block(std::int64_t layer) const;

  /// Gradient checkpointing where gradients are computed, unless outputs of the layers are asked for (see
  /// recompute()).
  void recompute_blocks(bool recomputes) { recomputes_blocks_ = recomputes; }

  torch::nn::ModuleList blocks{nullptr};  // num_layers, or one that all layers share
  Norm final_norm{nullptr};
  Embedding position_bias{nullptr};     // [buckets, H], T5's position bias that all blocks share, or empty
  Embedding distance_vectors{nullptr};  // [2 buckets, C], of kDisentangled, or empty
  Norm distance_norm{nullptr};          // of these

 private:
  /// The part of self-attention's inputs that depends on positions: one for the layers with a window, one for
  /// the others.
  struct Positions {
    AttentionMask mask;  // with the bias of relative positions that all layers share
    at::Tensor buckets;  // [T, S], of BucketTables::kPerLayer
    std::optional<RotaryTable> rotary;
  };
  Positions positions(const StackInputs& inputs, std::int64_t past, bool window) const;
  AttentionMask self_mask(const StackInputs& inputs, const MaskShape& shape) const;
  at::Tensor buckets(const MaskShape& shape, const at::Device& device) const;
  Distances distances(const StackInputs& inputs) const;
  bool drops_layer() const;
  RotaryTable rotary_table(const StackInputs& inputs, std::int64_t past, bool window) const;
  void check_memory(const StackInputs& inputs) const;
  void check_documents(const StackInputs& inputs) const;
  bool is_hooked(const StackInputs& inputs) const;
  at::Tensor run_recomputed(const at::Tensor& x, const SelfAttentionContext& context,
                            const CrossAttentionContext& cross) const;

  TransformerConfig config_;
  bool recomputes_blocks_ = false;
  std::shared_ptr<StackEngine> engine_;  // null: the modules compute
};
TORCH_MODULE(TransformerStack);

struct EncoderDecoderInputs {
  at::Tensor encoder_embeddings;  // [B, S, C]; not needed when `memory` is given
  at::Tensor decoder_embeddings;  // [B, T, C]
  at::Tensor attention_mask;      // [B, S] of the encoder's sequence, 1 keeps. Undefined: nothing is hidden.
  at::Tensor memory;  // [B, S, C], the encoder's output if it is known. Undefined: it is computed.
  at::Tensor decoder_attention_mask;  // [B, cached length + T], of the decoder's sequence
  at::Tensor decoder_positions;       // [T] or [B, T], as StackInputs::positions
  KeyValueCache* cache = nullptr;     // the decoder's
  bool output_hidden_states = false;
  bool output_attentions = false;
  bool output_heads = false;
  bool output_activations = false;
  std::vector<Intervention> interventions;
};

struct EncoderDecoderOutput {
  StackOutput encoder, decoder;  // if a memory was given, encoder.hidden alone
};

/// The transformer of Vaswani et al. (2017, section 3.1): an encoder of num_layers blocks and a decoder of
/// decoder_layers() blocks that also attend to the encoder's output. They share no weights.
class EncoderDecoderStackImpl : public torch::nn::Module {
 public:
  /// Throws c10::Error if the configuration is invalid or not an encoder-decoder's.
  explicit EncoderDecoderStackImpl(const TransformerConfig& config);

  EncoderDecoderOutput forward(const EncoderDecoderInputs& inputs);

  TransformerStack encoder{nullptr}, decoder{nullptr};
};
TORCH_MODULE(EncoderDecoderStack);

}  // namespace zoo
