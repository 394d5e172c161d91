#include "models/families/kinds/llama_kind.h"

namespace zoo::family::nanochat {

C base() {
  C config = llama_base();
  config.norm = NormKind::kPlainRmsNorm;
  config.embedding_norm = true;
  // It norms after the rotation, which changes no length.
  config.query_key_norm = QueryKeyNorm::kPerHead;
  config.activation = Activation::kRelu2;
  config.logits_softcap = 15.0;
  config.initial_weights = InitialWeights::kZeroResiduals;
  config.pad_token_id = 1;
  return config;
}

WeightTable weights(const C& config) {
  const auto projections = [&](const std::string& kind) {
    return WeightName{.ours = "stack.blocks.{}.attention.qkv." + kind,
                      .theirs = q_k_v("layers.{}.self_attn.", "_proj." + kind),
                      .layout = WeightLayout::kRotaryReversed,
                      .rows = config.query_key_value_rows(),
                      .pairs = config.head_size() / 2};
  };
  // clang-format off
  WeightTable table{.names = {
      {"embeddings.token.weight",                  {"embed_tokens.weight"}},
      projections("weight"),
      {"stack.blocks.{}.attention.out.weight",     {"layers.{}.self_attn.o_proj.weight"}},
      {"stack.blocks.{}.feed_forward.up.weight",   {"layers.{}.mlp.fc1.weight"}},
      {"stack.blocks.{}.feed_forward.down.weight", {"layers.{}.mlp.fc2.weight"}},
  }};
  // clang-format on
  if (config.qkv_bias) table.names.push_back(projections("bias"));
  if (config.attention_output_bias)
    table.names.push_back({"stack.blocks.{}.attention.out.bias", {"layers.{}.self_attn.o_proj.bias"}});
  add_decoder_heads(table, config, "model.", "embed_tokens");
  return table;
}

// A factor of the rotated numbers would be undone by the norm after the rotation; ours is before it.
void refuse_factor(const ConfigReader& reader, C& config) {
  if (config.rope_scaling.attention_factor == 1.0) return;
  for (const char* key : {"rope_scaling", "rope_parameters"})
    if (reader.has(key))
      reader.refuse(key, "expected a scaling without an attention_factor, such as linear or llama3");
}

std::vector<ConfigKey> unscaled_rope_keys() {
  std::vector<ConfigKey> keys = rope_keys();
  keys.front() = then_read(std::move(keys.front()), refuse_factor);
  return keys;
}

// A depth's width and heads, with the vocabulary of the repository's tokenizer.
C of_depth(std::int64_t depth) {
  return of_size(base(), {65536, 64 * depth, depth, depth / 2, 256 * depth}, /*max_positions=*/2048);
}

Family family() {
  return {
      .model_type = "nanochat",
      .description = "nanochat (Karpathy, 2025): decoder of the speedruns, norms without weights and ReLU^2",
      .heads = {{Head::kCausalLm, "NanoChatForCausalLM"}, {Head::kBase, "NanoChatModel"}},
      .base = base(),
      .keys = {"nanochat", concatenated({llama_keys("hidden_act", ActivationUse::kElementwise),
                                         unscaled_rope_keys(),
                                         {nullable_key("final_logit_softcapping", &C::logits_softcap),
                                          attention_bias_key()}})},
      .presets = {{"nanochat-d20", "nanochat, depth 20", of_depth(20)},
                  {"nanochat-d32", "nanochat, depth 32", of_depth(32)}},
      .weight_table = weights,
  };
}

}  // namespace zoo::family::nanochat
