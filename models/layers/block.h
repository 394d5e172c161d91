#pragma once

#include "models/layers/attention/attention.h"
#include "models/layers/feed_forward.h"
#include "models/layers/norm.h"

namespace zoo {

/// One transformer layer: self-attention, cross-attention if config.cross_attention, and feed-forward, each
/// with a residual connection and a norm before (NormPlacement::kPre) or after it (kPost). x [B, T, C] to
/// [B, T, C].
class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const TransformerConfig& config);

  at::Tensor forward(at::Tensor x, const SelfAttentionContext& context,
                     const CrossAttentionContext& cross = {});

  Norm attention_norm{nullptr}, cross_attention_norm{nullptr}, feed_forward_norm{nullptr};
  SelfAttention attention{nullptr};
  CrossAttention cross_attention{nullptr};  // empty, like its norm, unless config.cross_attention
  FeedForward feed_forward{nullptr};

 private:
  NormPlacement placement_;
};
TORCH_MODULE(Block);

}  // namespace zoo
