#include "models/layers/features.h"

#include <algorithm>

namespace zoo {
namespace {

// Fields that every engine implements, or that act outside of it: sizes, heads, training.
// clang-format off
constexpr std::string_view kCommon[] = {
    "vocab_size", "hidden_size", "num_layers", "num_decoder_layers", "num_heads", "num_kv_heads",
    "head_dim", "intermediate_size", "max_positions", "num_labels", "pad_token_id", "label_names",
    "problem_type", "eos_token_id", "trains_padding", "layer_norm_eps", "decoder_start_token_id", "shifted_labels", "tie_word_embeddings", "tie_prediction_bias",
    "embedding_dropout", "dropout", "attention_dropout", "activation_dropout", "final_dropout", "layer_dropout",
    "decoder_layer_dropout",
    "token_dropout", "classifier_dropout", "answer_dropout", "initializer_range", "initial_weights",
    "qkv_bias", "attention_output_bias", "feed_forward_bias", "norm_bias", "attention_scale",
    "router_loss", "router_loss_weight",
};
// clang-format on

bool has(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string> missing_features(const TransformerConfig& config,
                                          std::span<const std::string_view> known) {
  const auto fields = fields_of(config), plain = fields_of(TransformerConfig{});
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto& [name, value] = fields[i];
    std::string feature = std::string(name) + " = " + value;
    if (value == plain[i].second || has(kCommon, name) || has(known, name) || has(known, feature)) continue;
    missing.push_back(std::move(feature));
  }
  return missing;
}

}  // namespace zoo
