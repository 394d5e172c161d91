#pragma once

/// @file
/// Use:
///
///     zoo::Block block(config);
///     const at::Tensor y = block->forward(x, {.mask = {.causal = true}});  // [B, T, C] to [B, T, C]

#include "models/layers/attention/attention.h"
#include "models/layers/experts.h"
#include "models/layers/interventions.h"
#include "models/layers/norm.h"

namespace zoo {

/// One transformer layer: self-attention, cross-attention if config.cross_attention, and feed-forward, each
/// with a residual connection and norms where config.norm_placement says; or both side by side, as
/// config.sublayer_order says. x [B, T, C] to [B, T, C].
class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const TransformerConfig& config, std::int64_t layer = 0);

  at::Tensor forward(at::Tensor x, const SelfAttentionContext& context,
                     const CrossAttentionContext& cross = {});

  Norm attention_norm{nullptr};  // empty in a first layer without config.first_attention_norm
  Norm cross_attention_norm{nullptr};
  Norm feed_forward_norm{nullptr};                                   // empty with one norm for both
  Norm attention_end_norm{nullptr}, feed_forward_end_norm{nullptr};  // empty unless kSandwich
  SelfAttention attention{nullptr};
  CrossAttention cross_attention{nullptr};  // empty, like its norm, unless config.cross_attention
  FeedForward feed_forward{nullptr};
  Experts experts{nullptr};  // instead of feed_forward, in a layer that config.has_experts()

 private:
  struct Branch;
  Branch branch(LayerPart part, const Norm& norm, const Norm& end_norm, const LayerHook* hook) const;

  TransformerConfig config_;
};
TORCH_MODULE(Block);

}  // namespace zoo
