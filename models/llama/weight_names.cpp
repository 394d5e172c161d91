#include "models/llama/weight_names.h"

namespace zoo::llama {

WeightTable weight_table(const TransformerConfig& config) {
  constexpr auto kSame = WeightLayout::kSame;
  const std::int64_t width = config.num_heads * config.head_size();
  const std::int64_t kv_width = config.kv_heads() * config.head_size();
  const std::vector<std::int64_t> rows{width, kv_width, kv_width};
  WeightTable table;
  // clang-format off
  table.names = {
      {"token_embedding.weight",                   {"embed_tokens.weight"}},
      {"stack.blocks.{}.attention_norm.weight",    {"layers.{}.input_layernorm.weight"}},
      {"stack.blocks.{}.attention.qkv.weight",     {"layers.{}.self_attn.q_proj.weight",
                                                    "layers.{}.self_attn.k_proj.weight",
                                                    "layers.{}.self_attn.v_proj.weight"}, kSame, rows},
      {"stack.blocks.{}.attention.out.weight",     {"layers.{}.self_attn.o_proj.weight"}},
      {"stack.blocks.{}.feed_forward_norm.weight", {"layers.{}.post_attention_layernorm.weight"}},
      {"stack.blocks.{}.feed_forward.up.weight",   {"layers.{}.mlp.gate_proj.weight",
                                                    "layers.{}.mlp.up_proj.weight"}},
      {"stack.blocks.{}.feed_forward.down.weight", {"layers.{}.mlp.down_proj.weight"}},
      {"stack.final_norm.weight",                  {"norm.weight"}},
      {"score.weight",                             {"score.weight"}},
  };
  if (config.attention_bias) {
    table.names.insert(table.names.end(), {
      {"stack.blocks.{}.attention.qkv.bias",       {"layers.{}.self_attn.q_proj.bias",
                                                    "layers.{}.self_attn.k_proj.bias",
                                                    "layers.{}.self_attn.v_proj.bias"}, kSame, rows},
      {"stack.blocks.{}.attention.out.bias",       {"layers.{}.self_attn.o_proj.bias"}},
    });
  }
  if (config.feed_forward_bias) {
    table.names.insert(table.names.end(), {
      {"stack.blocks.{}.feed_forward.up.bias",     {"layers.{}.mlp.gate_proj.bias",
                                                    "layers.{}.mlp.up_proj.bias"}},
      {"stack.blocks.{}.feed_forward.down.bias",   {"layers.{}.mlp.down_proj.bias"}},
    });
  }
  // clang-format on
  table.prefix = "model.";
  table.unprefixed = table.of_heads = {"lm_head.", "score."};
  if (config.tie_word_embeddings) {
    table.tied = {{"lm_head.weight", "embed_tokens.weight"}};
  } else {
    table.names.push_back({"lm_head.weight", {"lm_head.weight"}});
  }
  // The frequencies of the rotary positions, which transformers kept as a buffer before version 4.32.
  table.ignored = {"layers.{}.self_attn.rotary_emb.inv_freq"};
  return table;
}

}  // namespace zoo::llama
