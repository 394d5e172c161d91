#pragma once

/// @file
/// Use:
///
///     const zoo::Intervention off{.site = {.layer = 2, .part = zoo::LayerPart::kAttention, .head = 3}};
///     model.eval();
///     const auto output = model.forward({.input_ids = ids_of_rows, .interventions = {off}});

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/layers/transformer_config.h"
#include "models/ops/attention.h"

namespace zoo {

/// Part of a layer whose output a forward pass can record and replace. kResidual: the residual stream after
/// the layer. The others: what the sublayer adds to it, after the norm that ends a branch (kSandwich,
/// kBranchEnd) and the factor residual_scale; in post-LN before the sum is normalised.
enum class LayerPart { kResidual, kAttention, kCrossAttention, kFeedForward };

/// Place in a model.
struct Site {
  Shape stack = Shape::kDecoder;  // kEncoder or kDecoder
  std::int64_t layer = 0;
  LayerPart part = LayerPart::kResidual;
  /// For attention, the head whose output, before the output projection, is meant. -1: the whole part.
  std::int64_t head = -1;
};

/// Replacement of a site's output: activation patching (Meng et al., 2022, section 2.1) and ablation.
struct Intervention {
  Site site;
  /// Broadcasts to [B, P, C], of a head to [B, P, D], for P positions. Undefined: the site is switched off. A
  /// head or sublayer then gives zeros; a layer (kResidual) gives its input.
  at::Tensor value;
  std::vector<std::int64_t> positions;  // ascending, in [0, T); empty: all
  bool adds = false;                    // the value to the output, instead of replacing it
};

/// What an attention of kind kFull computes from; see ops::scaled_dot_product_attention().
struct AttentionInputs {
  at::Tensor queries, keys, values;  // [B, H, T, D], [B, Hkv, S, D], [B, Hkv, S, D]
  AttentionMask mask = {};
  AttentionOptions options = {};
  at::Tensor unrotated_queries = {}, unrotated_keys = {};  // before rotary positions; undefined without
};

/// Values [B, Hkv, T, D] and outputs [B, H, T, D] of one call's heads, for a loss on them.
struct HeadRecord {
  at::Tensor values, outputs;
};

/// Outputs of a layer's parts, after its interventions.
struct LayerActivations {
  at::Tensor residual, attention, cross_attention, feed_forward;  // [B, T, C]
  at::Tensor attention_heads, cross_attention_heads;              // [B, H, T, D]
  AttentionInputs attention_inputs, cross_attention_inputs;       // empty for kinds other than kFull

  at::Tensor& of(LayerPart part);
  at::Tensor& heads_of(LayerPart part);  // kAttention or kCrossAttention
  /// [B, T, C], of a head [B, T, D].
  at::Tensor at(const Site& site) const;
};

/// Throws c10::Error that names the first intervention on a stack that the model lacks.
void check_stacks(const std::vector<Intervention>& interventions, bool has_encoder, bool has_decoder);

/// Throws c10::Error naming the first intervention on this stack whose layer, part, head, position or value
/// does not exist in a pass over embeddings [B, T, C].
void check_interventions(const std::vector<Intervention>& interventions, const TransformerConfig& config,
                         at::IntArrayRef embeddings);

/// One layer's interventions and the record of its activations. The layer's modules pass their outputs
/// through it.
class LayerHook {
 public:
  /// Keeps references. record: null if nothing is recorded.
  LayerHook(const std::vector<Intervention>& interventions, Shape stack, std::int64_t layer,
            LayerActivations* record);

  /// A sublayer's output [B, T, C].
  at::Tensor sublayer(LayerPart part, at::Tensor output) const;
  /// The residual stream [B, T, C] after the layer; `input` is that before it.
  at::Tensor residual(const at::Tensor& input, at::Tensor output) const;
  void attention(LayerPart part, const AttentionInputs& inputs) const;
  /// An attention's heads [B, H, T, D].
  at::Tensor heads(LayerPart part, at::Tensor outputs) const;

 private:
  std::vector<const Intervention*> on_layer_;
  LayerActivations* record_;
};

}  // namespace zoo
