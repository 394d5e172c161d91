#include "models/gpt/family.h"

#include "models/decoder/decoder.h"
#include "models/gpt/config_reader.h"
#include "models/gpt/weight_names.h"

namespace zoo::gpt {
namespace {

struct Size {
  std::int64_t layers, heads, hidden;
};

TransformerConfig gpt2_config(const Size& size) {
  TransformerConfig config;
  config.vocab_size = 50257;
  config.max_positions = 1024;
  config.num_layers = size.layers;
  config.num_heads = size.heads;
  config.hidden_size = size.hidden;
  config.embedding_dropout = config.attention_dropout = config.dropout = 0.1;
  return config;
}

// nanoGPT's configuration for a CPU: characters of Shakespeare, no biases, no dropout.
TransformerConfig shakespeare_char() {
  TransformerConfig config;
  config.vocab_size = 65;
  config.max_positions = 64;
  config.num_layers = config.num_heads = 4;
  config.hidden_size = 128;
  config.activation = Activation::kGelu;
  config.attention_bias = config.feed_forward_bias = config.norm_bias = false;
  return config;
}

// Brown et al. (2020), table 2.1. Its banded sparse layers have the same parameters as full ones.
TransformerConfig gpt3() {
  TransformerConfig config = gpt2_config({.layers = 96, .heads = 96, .hidden = 12288});
  config.max_positions = 2048;
  return config;
}

std::shared_ptr<Model> build(const TransformerConfig& config, Head head) {
  return build_decoder(config, head);
}

}  // namespace

Family family() {
  return {
      .model_type = "gpt2",
      .description =
          "GPT-2 (Radford et al., 2019): causal decoder, pre-LayerNorm, learned positions, tanh-GELU, tied",
      .heads = {{Head::kCausalLm, "GPT2LMHeadModel"},
                {Head::kBase, "GPT2Model"},
                {Head::kSequenceClassification, "GPT2ForSequenceClassification"}},
      .presets = {{"gpt2", "GPT-2 small", gpt2_config({12, 12, 768})},
                  {"gpt2-medium", "GPT-2 medium", gpt2_config({24, 16, 1024})},
                  {"gpt2-large", "GPT-2 large", gpt2_config({36, 20, 1280})},
                  {"gpt2-xl", "GPT-2 XL", gpt2_config({48, 25, 1600})},
                  {"shakespeare-char", "nanoGPT's character model for a CPU", shakespeare_char()},
                  {"gpt3", "GPT-3 175B, to count, not to build", gpt3()}},
      .read_config = read_config,
      .write_config = write_config,
      .build = build,
      .weight_table = weight_table,
  };
}

}  // namespace zoo::gpt
