#pragma once

#include "models/layers/linear.h"
#include "models/layers/transformer_config.h"

namespace zoo {

/// activation(x), elementwise. A gated unit takes gate and value side by side, [*, 2F], and returns [*, F].
at::Tensor activate(const at::Tensor& x, Activation activation);

/// Position-wise feed-forward network (Vaswani et al., 2017, section 3.3): down(activation(up(x))) (+
/// residual). x [B, T, C] to [B, T, C] through width F = feed_forward_size().
class FeedForwardImpl : public torch::nn::Module {
 public:
  explicit FeedForwardImpl(const TransformerConfig& config);

  at::Tensor forward(const at::Tensor& x, const at::Tensor& residual = {});

  Linear up{nullptr}, down{nullptr};

 private:
  Activation activation_;
  double dropout_;  // on the input of `down`
};
TORCH_MODULE(FeedForward);

}  // namespace zoo
