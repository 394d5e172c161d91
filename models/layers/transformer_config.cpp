#include "models/layers/transformer_config.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <limits>
#include <sstream>
#include <string>

#include "data/base/lines.h"
#include "models/layers/config_checks.h"

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

void TransformerConfig::validate() const {
  check_config(*this);
}

namespace {

std::string text_of(std::int64_t value) {
  return std::to_string(value);
}
std::string text_of(bool value) {
  return value ? "true" : "false";
}
std::string text_of(double value) {
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  text << value;
  return text.str();
}
std::string text_of(std::string_view name) {
  return std::string(name);
}
std::string text_of(const std::vector<std::string>& names) {
  return "[" + joined(names) + "]";
}
std::string text_of(const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  for (const double number : numbers) texts.push_back(text_of(number));
  return text_of(texts);
}
std::string text_of(const std::vector<bool>& flags) {
  std::string text;
  for (const bool flag : flags) text += flag ? '1' : '0';
  return text;
}

// Name of an enumerator; the names follow the order of the enum.
template <class Enum>
std::string_view named(Enum value, std::initializer_list<std::string_view> names) {
  const auto index = static_cast<std::size_t>(value);
  return index < names.size() ? names.begin()[index] : "?";
}

std::string text_of(const RopeScaling& scaling) {
  if (scaling.kind == RopeScalingKind::kNone) return "none";
  const std::string factor = " " + text_of(scaling.factor);
  if (scaling.kind == RopeScalingKind::kLinear) return "linear" + factor;
  const std::string original = " " + text_of(scaling.original_max_positions);
  if (scaling.kind == RopeScalingKind::kDynamic) return "dynamic" + factor + original;
  if (scaling.kind == RopeScalingKind::kLongRope)
    return "longrope " + text_of(scaling.attention_factor) + original + " " + text_of(scaling.short_factors) +
           " " + text_of(scaling.long_factors);
  if (scaling.kind == RopeScalingKind::kLlama3)
    return "llama3" + factor + " " + text_of(scaling.low_frequency_factor) + " " +
           text_of(scaling.high_frequency_factor) + original;
  return "yarn" + factor + " " + text_of(scaling.beta_fast) + " " + text_of(scaling.beta_slow) + " " +
         text_of(scaling.attention_factor) + original + (scaling.truncate ? "" : " untruncated");
}

}  // namespace

std::vector<std::pair<std::string_view, std::string>> fields_of(const TransformerConfig& config) {
  const TransformerConfig resolved = config.resolved();
  // Names every member: a new field does not compile until it is added here and below.
  const auto& [shape, vocab_size, hidden_size, num_layers, num_decoder_layers, num_heads, num_kv_heads,
               head_dim, intermediate_size, max_positions, type_vocab_size, embedding_size, num_labels,
               pad_token_id, eos_token_id, label_names, problem_type, sentence_pooling, trains_padding,
               decoder_start_token_id, shifted_labels, norm, norm_placement, first_attention_norm,
               sublayer_order, layer_norm_eps, position, position_count, position_offset, sinusoid_order,
               rope_theta, rope_scaling, rotary_dim, window_rope_theta, rotary_layers, relative_buckets,
               relative_max_distance, bucket_tables, activation, num_experts, experts_per_token, expert_size,
               expert_layers, expert_weights, shared_expert_size, router_loss, router_loss_weight, attention,
               attention_window, attention_projection, sliding_window, window_layers, query_key_norm,
               attention_scale, attention_softcap, cross_attention, sharing, tie_word_embeddings,
               tie_prediction_bias, embedding_scale, residual_scale, logits_scale, logits_softcap,
               output_bias, lm_head_bias, qkv_bias, attention_output_bias, feed_forward_bias, norm_bias,
               embedding_norm, embedding_dropout, attention_dropout, activation_dropout, dropout,
               final_dropout, layer_dropout, decoder_layer_dropout, classifier_dropout, token_dropout,
               answer_dropout, initializer_range, initial_weights] = resolved;
  return {
      {"shape", text_of(named(shape, {"encoder", "decoder", "encoder-decoder"}))},
      {"vocab_size", text_of(vocab_size)},
      {"hidden_size", text_of(hidden_size)},
      {"num_layers", text_of(num_layers)},
      {"num_decoder_layers", text_of(num_decoder_layers)},
      {"num_heads", text_of(num_heads)},
      {"num_kv_heads", text_of(num_kv_heads)},
      {"head_dim", text_of(head_dim)},
      {"intermediate_size", text_of(intermediate_size)},
      {"max_positions", text_of(max_positions)},
      {"type_vocab_size", text_of(type_vocab_size)},
      {"embedding_size", text_of(embedding_size)},
      {"num_labels", text_of(num_labels)},
      {"pad_token_id", text_of(pad_token_id)},
      {"eos_token_id", text_of(eos_token_id)},
      {"label_names", text_of(label_names)},
      {"problem_type",
       text_of(named(problem_type, {"by_labels", "regression", "single_label", "multi_label"}))},
      {"sentence_pooling", text_of(named(sentence_pooling, {"first", "mean"}))},
      {"trains_padding", text_of(trains_padding)},
      {"decoder_start_token_id", text_of(decoder_start_token_id)},
      {"shifted_labels", text_of(named(shifted_labels, {"start_token", "last_label"}))},
      {"norm", text_of(name_of(norm))},
      {"norm_placement", text_of(named(norm_placement, {"pre", "post", "sandwich", "branch_end"}))},
      {"first_attention_norm", text_of(first_attention_norm)},
      {"sublayer_order", text_of(named(sublayer_order, {"sequential", "parallel", "parallel_one_norm"}))},
      {"layer_norm_eps", text_of(layer_norm_eps)},
      {"position", text_of(name_of(position))},
      {"position_count", text_of(named(position_count, {"all", "not_padding", "not_masked"}))},
      {"position_offset", text_of(position_offset)},
      {"sinusoid_order", text_of(named(sinusoid_order, {"interleaved", "halves", "fairseq"}))},
      {"rope_theta", text_of(rope_theta)},
      {"rope_scaling", text_of(rope_scaling)},
      {"rotary_dim", text_of(rotary_dim)},
      {"window_rope_theta", text_of(window_rope_theta)},
      {"rotary_layers", text_of(rotary_layers)},
      {"relative_buckets", text_of(relative_buckets)},
      {"relative_max_distance", text_of(relative_max_distance)},
      {"bucket_tables", text_of(named(bucket_tables, {"one_for_all", "per_layer"}))},
      {"activation", text_of(name_of(activation))},
      {"num_experts", text_of(num_experts)},
      {"experts_per_token", text_of(experts_per_token)},
      {"expert_size", text_of(expert_size)},
      {"expert_layers", text_of(expert_layers)},
      {"expert_weights", text_of(named(expert_weights, {"of_all", "of_chosen"}))},
      {"shared_expert_size", text_of(shared_expert_size)},
      {"router_loss", text_of(router_loss)},
      {"router_loss_weight", text_of(router_loss_weight)},
      {"attention", text_of(name_of(attention))},
      {"attention_window", text_of(attention_window)},
      {"attention_projection", text_of(attention_projection)},
      {"sliding_window", text_of(sliding_window)},
      {"window_layers", text_of(window_layers)},
      {"query_key_norm", text_of(named(query_key_norm, {"none", "per_head", "whole"}))},
      {"attention_scale", text_of(attention_scale)},
      {"attention_softcap", text_of(attention_softcap)},
      {"cross_attention", text_of(cross_attention)},
      {"sharing", text_of(named(sharing, {"none", "all_layers"}))},
      {"tie_word_embeddings", text_of(tie_word_embeddings)},
      {"tie_prediction_bias", text_of(tie_prediction_bias)},
      {"embedding_scale", text_of(embedding_scale)},
      {"residual_scale", text_of(residual_scale)},
      {"logits_scale", text_of(logits_scale)},
      {"logits_softcap", text_of(logits_softcap)},
      {"output_bias", text_of(output_bias)},
      {"lm_head_bias", text_of(lm_head_bias)},
      {"qkv_bias", text_of(qkv_bias)},
      {"attention_output_bias", text_of(attention_output_bias)},
      {"feed_forward_bias", text_of(feed_forward_bias)},
      {"norm_bias", text_of(norm_bias)},
      {"embedding_norm", text_of(embedding_norm)},
      {"embedding_dropout", text_of(embedding_dropout)},
      {"attention_dropout", text_of(attention_dropout)},
      {"activation_dropout", text_of(activation_dropout)},
      {"dropout", text_of(dropout)},
      {"final_dropout", text_of(final_dropout)},
      {"layer_dropout", text_of(layer_dropout)},
      {"decoder_layer_dropout", text_of(decoder_layer_dropout)},
      {"classifier_dropout", text_of(classifier_dropout)},
      {"token_dropout", text_of(token_dropout)},
      {"answer_dropout", text_of(answer_dropout)},
      {"initializer_range", text_of(initializer_range)},
      {"initial_weights", text_of(named(initial_weights, {"normal", "scaled_residuals", "by_width"}))},
  };
}

std::string_view name_of(PositionKind position) {
  return named(position, {"none", "sinusoidal", "learned", "shaw", "t5_buckets", "rotary", "alibi",
                          "learned_and_t5_buckets", "disentangled"});
}

std::string_view name_of(NormKind norm) {
  return named(norm, {"layer_norm", "rms_norm", "rms_norm_plus_one"});
}

std::string_view name_of(AttentionKind attention) {
  return named(attention, {"full", "sliding_window", "strided_sparse", "linear", "linformer"});
}

}  // namespace zoo
