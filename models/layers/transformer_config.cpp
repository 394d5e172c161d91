#include "models/layers/transformer_config.h"

#include <algorithm>
#include <functional>

namespace zoo {

TransformerConfig TransformerConfig::encoder_part() const {
  TransformerConfig part = *this;
  part.shape = Shape::kEncoder;
  part.num_decoder_layers = 0;
  part.decoder_layer_dropout = 0;
  part.cross_attention = false;
  return part;
}

TransformerConfig TransformerConfig::decoder_part() const {
  TransformerConfig part = *this;
  part.shape = Shape::kDecoder;
  part.num_layers = decoder_layers();
  part.num_decoder_layers = 0;
  part.layer_dropout = decoder_layer_dropout;
  part.decoder_layer_dropout = 0;
  part.cross_attention = true;
  return part;
}

TransformerConfig TransformerConfig::resolved() const {
  TransformerConfig all = *this;
  all.intermediate_size = feed_forward_size();
  all.num_kv_heads = kv_heads();
  if (sliding_window == 0) all.window_layers.clear();
  if (dropout == 0) all.dropped_outputs = DroppedOutputs::kAll;
  if (num_experts == 0) {
    const TransformerConfig none;
    all.experts_per_token = none.experts_per_token;
    all.expert_size = none.expert_size;
    all.expert_layers.clear();
    all.expert_weights = none.expert_weights;
    all.shared_expert_size = none.shared_expert_size;
    all.router_loss = none.router_loss;
    all.router_loss_weight = none.router_loss_weight;
  } else {
    all.expert_size = expert_width();
  }
  for (std::vector<bool>* layers : {&all.window_layers, &all.rotary_layers, &all.expert_layers})
    if (std::ranges::all_of(*layers, std::identity())) layers->clear();
  if (num_heads > 0 && rotary_dim == head_size()) all.rotary_dim = 0;
  if (window_rope_theta == rope_theta && rope_scaling.kind == RopeScalingKind::kNone)
    all.window_rope_theta = 0;
  if (shape == Shape::kEncoderDecoder) all.num_decoder_layers = decoder_layers();
  if (hidden_size > 0) all.logits_scale = output_scale();
  if (hidden_size > 0) all.embedding_scale = token_scale();
  if (hidden_size > 0 && num_heads > 0) {
    all.head_dim = head_size();
    all.attention_scale = score_scale();
  }
  return all;
}

}  // namespace zoo
