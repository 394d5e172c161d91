#include <algorithm>
#include <array>
#include <cstddef>

#include "models/formats/weight_table.h"
#include "models/gguf/gguf_architecture.h"

namespace zoo {
namespace {

using enum GgufLayout;

std::vector<GgufKey> usual_sizes() {
  return {{"context_length", "max_position_embeddings"},
          {"embedding_length", "hidden_size"},
          {"block_count", "num_hidden_layers"},
          {"feed_forward_length", "intermediate_size"},
          {"attention.head_count", "num_attention_heads"}};
}

// Of Llama and its relatives; `more`: what this one has besides.
std::vector<GgufKey> decoder_keys(const std::vector<GgufKey>& more = {}) {
  return concatenated(concatenated(usual_sizes(), {{"attention.head_count_kv", "num_key_value_heads", false},
                                                   {"attention.key_length", "head_dim", false},
                                                   {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
                                                   {"rope.freq_base", "rope_theta", false}}),
                      more);
}

std::vector<GgufKey> qwen3_moe_keys() {
  return decoder_keys({{"expert_count", "num_experts"},
                       {"expert_used_count", "num_experts_per_tok"},
                       {"expert_feed_forward_length", "moe_intermediate_size"}});
}

std::vector<GgufKey> gpt2_keys() {
  return {{"context_length", "n_positions"},  {"embedding_length", "n_embd"},
          {"block_count", "n_layer"},         {"feed_forward_length", "n_inner"},
          {"attention.head_count", "n_head"}, {"attention.layer_norm_epsilon", "layer_norm_epsilon"}};
}

std::vector<GgufKey> bert_keys_of_gguf() {
  return concatenated(usual_sizes(), {{"attention.layer_norm_epsilon", "layer_norm_eps"}});
}

std::vector<GgufKey> t5_keys() {
  return {{"context_length", "n_positions"},
          {"embedding_length", "d_model"},
          {"block_count", "num_layers"},
          {"decoder_block_count", "num_decoder_layers", false},
          {"feed_forward_length", "d_ff"},
          {"attention.head_count", "num_heads"},
          {"attention.key_length", "d_kv"},
          {"attention.layer_norm_rms_epsilon", "layer_norm_epsilon"},
          {"attention.relative_buckets_count", "relative_attention_num_buckets"},
          {"decoder_start_token_id", "decoder_start_token_id", false}};
}

// Llama and its relatives. `heads`: the layout of queries and keys; `norm`: of all norms.
std::vector<GgufName> decoder_tensors(bool neighbours = false, GgufLayout norm = kSame) {
  const std::string layer = "model.layers.{}.";
  return {{"token_embd", "model.embed_tokens"},
          {"output_norm", "model.norm", norm},
          {"output", "lm_head"},
          {"blk.{}.attn_norm", layer + "input_layernorm", norm},
          {"blk.{}.ffn_norm", layer + "post_attention_layernorm", norm},
          {"blk.{}.attn_q", layer + "self_attn.q_proj", neighbours ? kQueryHeads : kSame},
          {"blk.{}.attn_k", layer + "self_attn.k_proj", neighbours ? kKeyHeads : kSame},
          {"blk.{}.attn_v", layer + "self_attn.v_proj"},
          {"blk.{}.attn_output", layer + "self_attn.o_proj"},
          {"blk.{}.attn_q_norm", layer + "self_attn.q_norm"},
          {"blk.{}.attn_k_norm", layer + "self_attn.k_norm"},
          {"blk.{}.ffn_gate", layer + "mlp.gate_proj"},
          {"blk.{}.ffn_up", layer + "mlp.up_proj"},
          {"blk.{}.ffn_down", layer + "mlp.down_proj"}};
}

// The tensors, of which the one with this name in GGUF is another.
std::vector<GgufName> exchanged(std::vector<GgufName> names, const std::string& theirs, GgufName other) {
  *std::ranges::find(names, theirs, &GgufName::theirs) = std::move(other);
  return names;
}

// Adds the router and the experts of each layer.
std::vector<GgufName> with_experts(std::vector<GgufName> names, const std::string& block,
                                   const std::array<const char*, 3>& gate_up_down) {
  const std::string layer = "model.layers.{}." + block + ".";
  names.push_back({"blk.{}.ffn_gate_inp", layer + "gate"});
  const char* parts[] = {"gate", "up", "down"};
  for (std::size_t i = 0; i < 3; ++i)
    names.push_back({std::string("blk.{}.ffn_") + parts[i] + "_exps",
                     layer + "experts.{e}." + gate_up_down[i], kExperts});
  return names;
}

std::vector<GgufName> qwen_experts() {
  return with_experts(decoder_tensors(), "mlp", {"gate_proj", "up_proj", "down_proj"});
}

// Adds the expert that reads every token.
std::vector<GgufName> qwen2_moe_tensors() {
  std::vector<GgufName> names = qwen_experts();
  const std::string shared = "model.layers.{}.mlp.shared_expert";
  names.push_back({"blk.{}.ffn_gate_inp_shexp", shared + "_gate", kRow});
  for (const char* part : {"gate", "up", "down"})
    names.push_back({std::string("blk.{}.ffn_") + part + "_shexp", shared + "." + part + "_proj"});
  return names;
}

std::vector<GgufName> gemma2_tensors() {
  return concatenated(exchanged(decoder_tensors(false, kPlusOne), "blk.{}.ffn_norm",
                                {"blk.{}.ffn_norm", "model.layers.{}.pre_feedforward_layernorm", kPlusOne}),
                      {{"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm", kPlusOne},
                       {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm", kPlusOne}});
}

std::vector<GgufName> gemma3_tensors() {
  std::vector<GgufName> names = gemma2_tensors();
  for (GgufName& name : names)
    if (name.theirs == "blk.{}.attn_q_norm" || name.theirs == "blk.{}.attn_k_norm") name.layout = kPlusOne;
  return names;
}

// Its norms are those after the sublayers.
std::vector<GgufName> olmo2_tensors() {
  return exchanged(exchanged(decoder_tensors(), "blk.{}.attn_norm",
                             {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"}),
                   "blk.{}.ffn_norm", {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"});
}

std::vector<GgufName> phi3_tensors() {
  return exchanged(exchanged(decoder_tensors(), "blk.{}.attn_q",
                             {"blk.{}.attn_qkv", "model.layers.{}.self_attn.qkv_proj"}),
                   "blk.{}.ffn_up", {"blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj"});
}

std::vector<GgufName> gpt2_tensors() {
  const std::string layer = "transformer.h.{}.";
  return {{"token_embd", "transformer.wte"},
          {"position_embd", "transformer.wpe"},
          {"output_norm", "transformer.ln_f"},
          {"output", "lm_head"},
          {"blk.{}.attn_norm", layer + "ln_1"},
          {"blk.{}.attn_qkv", layer + "attn.c_attn", kTransposed},
          {"blk.{}.attn_output", layer + "attn.c_proj", kTransposed},
          {"blk.{}.ffn_norm", layer + "ln_2"},
          {"blk.{}.ffn_up", layer + "mlp.c_fc", kTransposed},
          {"blk.{}.ffn_down", layer + "mlp.c_proj", kTransposed}};
}

std::vector<GgufName> bert_tensors() {
  const std::string layer = "encoder.layer.{}.";
  return {{"token_embd", "embeddings.word_embeddings"},
          {"position_embd", "embeddings.position_embeddings"},
          {"token_types", "embeddings.token_type_embeddings"},
          {"token_embd_norm", "embeddings.LayerNorm"},
          {"blk.{}.attn_q", layer + "attention.self.query"},
          {"blk.{}.attn_k", layer + "attention.self.key"},
          {"blk.{}.attn_v", layer + "attention.self.value"},
          {"blk.{}.attn_output", layer + "attention.output.dense"},
          {"blk.{}.attn_output_norm", layer + "attention.output.LayerNorm"},
          {"blk.{}.ffn_up", layer + "intermediate.dense"},
          {"blk.{}.ffn_down", layer + "output.dense"},
          {"blk.{}.layer_output_norm", layer + "output.LayerNorm"}};
}

std::vector<GgufName> nomic_bert_tensors() {
  const std::string layer = "encoder.layers.{}.";
  return {{"token_embd", "embeddings.word_embeddings"},
          {"token_types", "embeddings.token_type_embeddings"},
          {"token_embd_norm", "emb_ln"},
          {"blk.{}.attn_qkv", layer + "attn.Wqkv"},
          {"blk.{}.attn_output", layer + "attn.out_proj"},
          {"blk.{}.attn_output_norm", layer + "norm1"},
          {"blk.{}.ffn_up", layer + "mlp.fc11"},
          {"blk.{}.ffn_gate", layer + "mlp.fc12"},
          {"blk.{}.ffn_down", layer + "mlp.fc2"},
          {"blk.{}.layer_output_norm", layer + "norm2"}};
}

// T5 1.1 has a gate, and so another name for the projection beside it.
void add_t5_stack(const std::string& theirs, const std::string& ours, bool gated,
                  std::vector<GgufName>& names) {
  const bool decoder = theirs == "dec";
  const std::string block = theirs + ".blk.{}.", layer = ours + ".block.{}.layer.";
  const auto attention = [&](const std::string& prefix, const std::string& module) {
    for (const char* part : {"q", "k", "v"}) names.push_back({block + prefix + part, layer + module + part});
    names.push_back({block + prefix + "o", layer + module + "o"});
  };
  attention("attn_", "0.SelfAttention.");
  names.push_back({block + "attn_rel_b", layer + "0.SelfAttention.relative_attention_bias"});
  names.push_back({block + "attn_norm", layer + "0.layer_norm"});
  if (decoder) {
    attention("cross_attn_", "1.EncDecAttention.");
    names.push_back({block + "cross_attn_rel_b", layer + "1.EncDecAttention.relative_attention_bias"});
    names.push_back({block + "cross_attn_norm", layer + "1.layer_norm"});
  }
  const std::string last = decoder ? "2." : "1.";
  names.push_back({block + "ffn_norm", layer + last + "layer_norm"});
  const std::string dense = layer + last + "DenseReluDense.";
  names.push_back({block + "ffn_up", dense + (gated ? "wi_1" : "wi")});
  names.push_back({block + "ffn_down", dense + "wo"});
  if (gated) names.push_back({block + "ffn_gate", dense + "wi_0"});
  names.push_back({theirs + ".output_norm", ours + ".final_layer_norm"});
}

std::vector<GgufName> t5_tensors(bool gated) {
  std::vector<GgufName> names{{"token_embd", "shared"}, {"output", "lm_head"}};
  add_t5_stack("enc", "encoder", gated, names);
  add_t5_stack("dec", "decoder", gated, names);
  return names;
}

}  // namespace

const std::vector<GgufArchitecture>& gguf_architectures() {
  static const std::vector<GgufArchitecture> all{
      {"llama", "mixtral", "MixtralForCausalLM",
       decoder_keys({{"expert_count", "num_local_experts"}, {"expert_used_count", "num_experts_per_tok"}}),
       with_experts(decoder_tensors(/*neighbours=*/true), "block_sparse_moe", {"w1", "w3", "w2"}),
       "blk.0.ffn_gate_exps.weight"},
      {"llama", "llama", "LlamaForCausalLM", decoder_keys(), decoder_tensors(/*neighbours=*/true)},
      {"qwen2", "qwen2", "Qwen2ForCausalLM", decoder_keys(), decoder_tensors()},
      {"qwen3", "qwen3", "Qwen3ForCausalLM", decoder_keys(), decoder_tensors()},
      {"qwen2moe", "qwen2_moe", "Qwen2MoeForCausalLM",
       concatenated(qwen3_moe_keys(),
                    {{"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}}),
       qwen2_moe_tensors()},
      {"qwen3moe", "qwen3_moe", "Qwen3MoeForCausalLM", qwen3_moe_keys(), qwen_experts()},
      {"gemma", "gemma", "GemmaForCausalLM", decoder_keys(), decoder_tensors(false, kPlusOne)},
      {"gemma2", "gemma2", "Gemma2ForCausalLM",
       decoder_keys({{"attention.sliding_window", "sliding_window", false},
                     {"attn_logit_softcapping", "attn_logit_softcapping", false},
                     {"final_logit_softcapping", "final_logit_softcapping", false}}),
       gemma2_tensors()},
      {"gemma3", "gemma3_text", "Gemma3ForCausalLM",
       decoder_keys({{"attention.sliding_window", "sliding_window", false},
                     {"attention.sliding_window_pattern", "sliding_window_pattern", false},
                     {"final_logit_softcapping", "final_logit_softcapping", false},
                     {"rope.freq_base_swa", "rope_local_base_freq", false}}),
       gemma3_tensors()},
      {"smollm3", "smollm3", "SmolLM3ForCausalLM", decoder_keys(), decoder_tensors(/*neighbours=*/true)},
      {"granite", "granite", "GraniteForCausalLM",
       decoder_keys({{"attention.scale", "attention_multiplier"},
                     {"embedding_scale", "embedding_multiplier", false},
                     {"residual_scale", "residual_multiplier", false},
                     {"logit_scale", "logits_scaling"}}),
       decoder_tensors(/*neighbours=*/true)},
      {"olmo2", "olmo2", "Olmo2ForCausalLM", decoder_keys(), olmo2_tensors()},
      {"gpt2", "gpt2", "GPT2LMHeadModel", gpt2_keys(), gpt2_tensors()},
      {"phi3", "phi3", "Phi3ForCausalLM", decoder_keys(), phi3_tensors()},
      {"bert", "bert", "BertModel", bert_keys_of_gguf(), bert_tensors()},
      {"nomic-bert", "nomic_bert", "NomicBertModel",
       concatenated(bert_keys_of_gguf(), {{"rope.freq_base", "rope_theta"}}), nomic_bert_tensors()},
      {"t5", "t5", "T5ForConditionalGeneration", t5_keys(), t5_tensors(true), "enc.blk.0.ffn_gate.weight"},
      {"t5", "t5", "T5ForConditionalGeneration", t5_keys(), t5_tensors(false)},
  };
  return all;
}

}  // namespace zoo
