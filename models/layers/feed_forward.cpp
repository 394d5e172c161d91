#include "models/layers/feed_forward.h"

#include "models/ops/linear.h"

namespace zoo {

FeedForwardImpl::FeedForwardImpl(const TransformerConfig& config) : config_(config) {
  const std::int64_t width = config.feed_forward_size();
  const std::int64_t up_width = is_gated(config.activation) ? 2 * width : width;
  up = register_module("up", Linear(config.hidden_size, up_width, config.feed_forward_bias));
  down = register_module("down", Linear(width, config.hidden_size, config.feed_forward_bias));
}

at::Tensor FeedForwardImpl::forward(const at::Tensor& x, const at::Tensor& add_to) {
  const double dropout = is_training() ? config_.activation_dropout : 0.0;
  const ops::Residual residual{.add_to = add_to,
                               .dropout = is_training() ? config_.feed_forward_output_dropout() : 0.0};
  if (up->is_plain() && down->is_plain())
    return ops::feed_forward(x, {up->weight, up->bias, down->weight, down->bias}, config_.activation, dropout,
                             residual);
  return down->forward(ops::dropout(activate(up->forward(x), config_.activation), dropout), residual);
}

}  // namespace zoo
