#include "models/t5/initial_weights.h"

#include <cmath>

namespace zoo::t5 {
namespace {

class Drawer {
 public:
  Drawer(const TransformerConfig& config, at::Generator generator)
      : factor_(config.initializer_range),
        hidden_(static_cast<double>(config.hidden_size)),
        head_(static_cast<double>(config.head_size())),
        query_rows_(config.num_heads * config.head_size()),
        generator_(std::move(generator)) {}

  void draw(const at::Tensor& weight, double width) {
    weight.normal_(0.0, factor_ / std::sqrt(width), generator_);
  }

  void draw(BlockImpl& block) {
    block.attention_norm->reset();
    const at::Tensor& qkv = block.attention->qkv->weight;
    draw(qkv.slice(0, 0, query_rows_), hidden_ * head_);
    draw(qkv.slice(0, query_rows_), hidden_);
    draw(block.attention->out->weight, static_cast<double>(query_rows_));
    if (block.cross_attention) {
      block.cross_attention_norm->reset();
      draw(block.cross_attention->q->weight, hidden_ * head_);
      draw(block.cross_attention->kv->weight, hidden_);
      draw(block.cross_attention->out->weight, static_cast<double>(query_rows_));
    }
    block.feed_forward_norm->reset();
    draw(block.feed_forward->up->weight, hidden_);
    const at::Tensor& down = block.feed_forward->down->weight;
    draw(down, static_cast<double>(down.size(1)));
  }

  void draw_positions(EmbeddingImpl& bias) { draw(bias.weight, hidden_); }

 private:
  double factor_, hidden_, head_;
  std::int64_t query_rows_;
  at::Generator generator_;
};

}  // namespace

void initialize(TransformerStackImpl& stack, const TransformerConfig& config, at::Generator generator) {
  const at::NoGradGuard no_grad;
  Drawer drawer(config, std::move(generator));
  drawer.draw_positions(*stack.position_bias);
  for (const auto& module : *stack.blocks) drawer.draw(*module->as<BlockImpl>());
  stack.final_norm->reset();
}

}  // namespace zoo::t5
