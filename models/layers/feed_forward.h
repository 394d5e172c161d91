#pragma once

/// @file
/// Use:
///
///     zoo::FeedForward feed_forward(config);
///     const at::Tensor y = feed_forward->forward(x, /*add_to=*/x);  // with the residual connection

#include "models/layers/linear.h"
#include "models/layers/transformer_config.h"

namespace zoo {

/// Position-wise feed-forward network (Vaswani et al., 2017, section 3.3): down(activation(up(x))), added to
/// `add_to` if given. x [B, T, C] to [B, T, C] through width F = feed_forward_size().
class FeedForwardImpl : public torch::nn::Module {
 public:
  explicit FeedForwardImpl(const TransformerConfig& config);

  at::Tensor forward(const at::Tensor& x, const at::Tensor& add_to = {});

  Linear up{nullptr}, down{nullptr};

 private:
  TransformerConfig config_;
};
TORCH_MODULE(FeedForward);

}  // namespace zoo
