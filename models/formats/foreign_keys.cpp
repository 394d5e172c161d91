#include "models/formats/foreign_keys.h"

#include <nlohmann/json.hpp>

namespace zoo {
namespace {

// The value that changes nothing; null where only the key's absence does.
struct ForeignKey {
  const char* name;
  nlohmann::json neutral;
};

const std::vector<ForeignKey>& foreign_keys() {
  static const std::vector<ForeignKey> all{
      // Multipliers and caps: Granite, Cohere, MiniCPM, Gemma.
      {"embedding_multiplier", 1},
      {"residual_multiplier", 1},
      {"attention_multiplier", nullptr},
      {"logits_scaling", 1},
      {"logit_scale", 1},
      {"lm_head_multiplier", 1},
      {"scale_emb", 1},
      {"scale_depth", nullptr},
      {"attn_logit_softcapping", nullptr},
      {"final_logit_softcapping", nullptr},
      {"query_pre_attn_scalar", nullptr},
      // Parts of a block: OLMo, StableLM, Phi, GPT-NeoX, Falcon, MPT, GPT-J.
      {"clip_qkv", nullptr},
      {"qk_layernorm", false},
      {"use_qk_norm", false},
      {"use_parallel_residual", false},
      {"parallel_attn", false},
      {"alibi", false},
      {"rope_interleaved", false},
      {"rotary_dim", nullptr},
      // Other attention: DeepSeek, Llama 4, DeBERTa, XLNet.
      {"kv_lora_rank", nullptr},
      {"attention_chunk_size", nullptr},
      {"relative_attention", false},
      {"conv_kernel_size", nullptr},
      // Mixtures of experts.
      {"num_local_experts", 0},
      {"num_experts", 0},
      {"n_routed_experts", 0},
      // Weights that are stored in another form.
      {"quantization_config", nullptr},
  };
  return all;
}

}  // namespace

void refuse_foreign_keys(const ConfigReader& reader, const std::string& family) {
  for (const ForeignKey& key : foreign_keys()) {
    if (reader.was_asked_for(key.name) || reader.is(key.name, key.neutral)) continue;
    reader.refuse(key.name, "a key of other architectures, which may change the numbers of a " + family);
  }
}

}  // namespace zoo
