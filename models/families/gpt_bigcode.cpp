#include "models/families/kinds/shared.h"

namespace zoo::family::gpt_bigcode {

C base() {
  C config;
  config.activation = Activation::kGeluTanh;
  config.num_kv_heads = 1;
  config.embedding_dropout = config.attention_dropout = config.dropout = 0.1;
  return config;
}

WeightTable weights(const C& config) {
  // clang-format off
  WeightTable table{.names = {
      {"embeddings.token.weight",    {"wte.weight"}},
      {"embeddings.position.weight", {"wpe.weight"}},
      {"score.weight",               {"score.weight"}},
  }};
  add_weights_and_biases(table, {
      {"stack.blocks.{}.attention_norm",    {"h.{}.ln_1"}},
      {"stack.blocks.{}.attention.qkv",     {"h.{}.attn.c_attn"}, WeightLayout::kByHead,
       config.query_key_value_rows(), config.kv_heads()},
      {"stack.blocks.{}.attention.out",     {"h.{}.attn.c_proj"}},
      {"stack.blocks.{}.feed_forward_norm", {"h.{}.ln_2"}},
      {"stack.blocks.{}.feed_forward.up",   {"h.{}.mlp.c_fc"}},
      {"stack.blocks.{}.feed_forward.down", {"h.{}.mlp.c_proj"}},
      {"stack.final_norm",                  {"ln_f"}},
  });
  // clang-format on
  add_decoder_heads(table, config, "transformer.", "wte");
  table.ignored = gpt_mask_buffers();
  return table;
}

Family family() {
  return {
      .model_type = "gpt_bigcode",
      .description = "GPTBigCode (Ben Allal et al., 2023): GPT-2 with one key and value for all heads",
      .heads = decoder_heads("GPTBigCode"),
      .base = base(),
      .keys = {"GPTBigCode",
               concatenated(gpt_keys(),
                            {
                                choice_key<std::int64_t>("multi_query", &C::num_kv_heads, 1, 0),
                                required_key("n_positions", &C::max_positions),
                                optional_key("tie_word_embeddings", &C::tie_word_embeddings),
                                ignored_keys({"attention_softmax_in_fp32", "num_key_value_heads",
                                              "scale_attention_softmax_in_fp32", "inference_runner",
                                              "max_batch_size", "max_sequence_length", "pad_key_length",
                                              "pre_allocate_kv_cache", "validate_runner_input"}),
                                expected_key("scale_attn_weights", true),
                                expected_key("add_cross_attention", false),
                            })},
      .presets = {{"starcoder", "StarCoder", of_size(base(), {49152, 6144, 40, 48}, 8192)},
                  {"starcoderbase-1b", "StarCoderBase 1B", of_size(base(), {49152, 2048, 24, 16}, 8192)},
                  {"gpt_bigcode-santacoder", "SantaCoder", of_size(base(), {49280, 2048, 24, 16}, 2048)}},
      .weight_table = weights,
  };
}

}  // namespace zoo::family::gpt_bigcode
