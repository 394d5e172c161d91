#include "models/llama/family.h"

#include "models/decoder/decoder.h"
#include "models/llama/config_reader.h"
#include "models/llama/weight_names.h"

namespace zoo::llama {
namespace {

// What all of them have.
TransformerConfig llama_config() {
  TransformerConfig config;
  config.position = PositionKind::kRotary;
  config.norm = NormKind::kRmsNorm;
  config.activation = Activation::kSwiGlu;
  config.attention_bias = config.feed_forward_bias = config.norm_bias = false;
  config.initial_weights = InitialWeights::kNormal;
  config.trains_padding = false;
  return config;
}

// Touvron et al. (2023).
TransformerConfig llama2_7b() {
  TransformerConfig config = llama_config();
  config.vocab_size = 32000;
  config.hidden_size = 4096;
  config.num_layers = config.num_heads = 32;
  config.intermediate_size = 11008;
  config.max_positions = 4096;
  config.tie_word_embeddings = false;
  return config;
}

// Dubey et al. (2024): one vocabulary, one rotary base, grouped heads.
TransformerConfig llama3(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t inner) {
  TransformerConfig config = llama_config();
  config.vocab_size = 128256;
  config.hidden_size = hidden;
  config.num_layers = layers;
  config.num_heads = heads;
  config.num_kv_heads = 8;
  config.intermediate_size = inner;
  config.max_positions = 8192;
  config.rope_theta = 500000.0;
  config.tie_word_embeddings = false;
  return config;
}

// The sizes of 2024 that fit small machines: longer contexts by scaling, tied.
TransformerConfig llama32(TransformerConfig config) {
  config.max_positions = 131072;
  config.tie_word_embeddings = true;
  config.rope_scaling = {.kind = RopeScalingKind::kLlama3, .factor = 32.0};
  return config;
}

// Characters of a small text on a CPU, as shakespeare-char of GPT-2.
TransformerConfig tiny() {
  TransformerConfig config = llama_config();
  config.vocab_size = 65;
  config.hidden_size = 128;
  config.num_layers = config.num_heads = 4;
  config.num_kv_heads = 2;
  config.intermediate_size = 344;
  config.max_positions = 256;
  return config;
}

std::shared_ptr<Model> build(const TransformerConfig& config, Head head) {
  return build_decoder(config, head);
}

}  // namespace

Family family() {
  return {
      .model_type = "llama",
      .description =
          "Llama (Touvron et al., 2023): causal decoder, pre-RMSNorm, rotary positions, SwiGLU, grouped "
          "heads",
      .heads = {{Head::kCausalLm, "LlamaForCausalLM"},
                {Head::kBase, "LlamaModel"},
                {Head::kSequenceClassification, "LlamaForSequenceClassification"}},
      .presets = {{"llama-tiny", "characters on a CPU, with Llama's parts", tiny()},
                  {"llama-2-7b", "Llama 2 7B", llama2_7b()},
                  {"llama-3-8b", "Llama 3 8B", llama3(4096, 32, 32, 14336)},
                  {"llama-3.2-1b", "Llama 3.2 1B", llama32(llama3(2048, 16, 32, 8192))},
                  {"llama-3.2-3b", "Llama 3.2 3B", llama32(llama3(3072, 28, 24, 8192))}},
      .read_config = read_config,
      .write_config = write_config,
      .build = build,
      .weight_table = weight_table,
  };
}

}  // namespace zoo::llama
