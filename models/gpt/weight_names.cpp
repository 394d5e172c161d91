#include "models/gpt/weight_names.h"

namespace zoo::gpt {

WeightTable weight_table(const TransformerConfig& config) {
  constexpr auto kTransposed = WeightLayout::kTransposed;
  WeightTable table;
  // clang-format off
  table.names = {
      {"token_embedding.weight",                  {"wte.weight"}},
      {"position_embedding.weight",               {"wpe.weight"}},
      {"stack.blocks.{}.attention_norm.weight",    {"h.{}.ln_1.weight"}},
      {"stack.blocks.{}.attention_norm.bias",      {"h.{}.ln_1.bias"}},
      {"stack.blocks.{}.attention.qkv.weight",     {"h.{}.attn.c_attn.weight"}, kTransposed},
      {"stack.blocks.{}.attention.qkv.bias",       {"h.{}.attn.c_attn.bias"}},
      {"stack.blocks.{}.attention.out.weight",     {"h.{}.attn.c_proj.weight"}, kTransposed},
      {"stack.blocks.{}.attention.out.bias",       {"h.{}.attn.c_proj.bias"}},
      {"stack.blocks.{}.feed_forward_norm.weight", {"h.{}.ln_2.weight"}},
      {"stack.blocks.{}.feed_forward_norm.bias",   {"h.{}.ln_2.bias"}},
      {"stack.blocks.{}.feed_forward.up.weight",   {"h.{}.mlp.c_fc.weight"}, kTransposed},
      {"stack.blocks.{}.feed_forward.up.bias",     {"h.{}.mlp.c_fc.bias"}},
      {"stack.blocks.{}.feed_forward.down.weight", {"h.{}.mlp.c_proj.weight"}, kTransposed},
      {"stack.blocks.{}.feed_forward.down.bias",   {"h.{}.mlp.c_proj.bias"}},
      {"stack.final_norm.weight",                 {"ln_f.weight"}},
      {"stack.final_norm.bias",                   {"ln_f.bias"}},
      {"score.weight",                            {"score.weight"}},
  };
  // clang-format on
  table.prefix = "transformer.";
  table.unprefixed = table.of_heads = {"lm_head.", "score."};
  if (config.tie_word_embeddings) {
    table.tied = {{"lm_head.weight", "wte.weight"}};
  } else {
    table.names.push_back({"lm_head.weight", {"lm_head.weight"}});
  }
  // The causal mask, which transformers kept as a buffer before version 4.31.
  table.ignored = {"h.{}.attn.bias", "h.{}.attn.masked_bias"};
  return table;
}

}  // namespace zoo::gpt
