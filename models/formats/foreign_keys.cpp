#include "models/formats/foreign_keys.h"

#include <algorithm>
#include <string_view>

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

// clang-format off
constexpr std::string_view kOfNoNumbers[] = {
    // The file and what it was made with.
    "_name_or_path", "name_or_path", "architectures", "auto_map", "custom_pipelines", "dtype", "torch_dtype", "model_type",
    "transformers_version", "_commit_hash", "adapter_config", "unsloth_fixed", "unsloth_version",
    // How a program runs it, and what it gives back.
    "_attn_implementation", "attn_implementation", "_attn_implementation_autoset", "_experts_implementation", "base_model_tp_plan",
    "chunk_size_feed_forward", "gradient_checkpointing", "output_attentions", "output_hidden_states", "output_past", "output_scores",
    "pretraining_tp", "return_dict", "return_dict_in_generate", "torchscript", "tpu", "use_bfloat16", "use_cache", "use_flash_attention",
    "use_flash_attention_2", "xla_device",
    // Tokens and texts.
    "bos_token_id", "cls_token_id", "decoder_start_token_id", "eos_token_id", "forced_bos_token_id", "forced_eos_token_id", "language",
    "languages", "mask_token_id", "prefix", "sep_token_id", "tokenizer_class",
    // Generation, in files of transformers 4.
    "bad_words_ids", "begin_suppress_tokens", "diversity_penalty", "do_sample", "early_stopping", "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty", "length_penalty", "max_length", "max_new_tokens", "min_length", "no_repeat_ngram_size",
    "num_beam_groups", "num_beams", "num_return_sequences", "remove_invalid_values", "repetition_penalty", "suppress_tokens",
    "task_specific_params", "temperature", "tf_legacy_loss", "top_k", "top_p", "typical_p",
    // Tasks and training.
    "finetuning_task", "is_encoder_decoder", "label2id", "num_labels", "pruned_heads",
};
// clang-format on

}  // namespace

bool is_foreign_key(const std::string& key) {
  return std::ranges::find(foreign_keys(), key, &ForeignKey::name) != foreign_keys().end();
}

bool changes_no_numbers(const std::string& key) {
  return std::ranges::find(kOfNoNumbers, key) != std::end(kOfNoNumbers);
}

void refuse_foreign_keys(const ConfigReader& reader, const std::string& family) {
  for (const ForeignKey& key : foreign_keys()) {
    if (reader.was_asked_for(key.name) || reader.is(key.name, key.neutral)) continue;
    reader.refuse(key.name, "a key of other architectures, which may change the numbers of a " + family);
  }
}

}  // namespace zoo
