#pragma once

#include "models/layers/attention.h"
#include "models/layers/feed_forward.h"
#include "models/layers/norm.h"

namespace zoo {

/// One transformer layer: self-attention and feed-forward, each with a residual connection and a norm before
/// (NormPlacement::kPre) or after it (kPost). x [B, T, C] to [B, T, C].
class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const TransformerConfig& config);

  /// The attention's weights come with the output when the context asks for them.
  AttentionOutput forward(const at::Tensor& x, const SelfAttentionContext& context);

  Norm attention_norm{nullptr}, feed_forward_norm{nullptr};
  SelfAttention attention{nullptr};
  FeedForward feed_forward{nullptr};

 private:
  at::Tensor drop(const at::Tensor& x) const;

  NormPlacement placement_;
  double dropout_;
};
TORCH_MODULE(Block);

}  // namespace zoo
