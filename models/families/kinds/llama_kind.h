#pragma once

#include <string>
#include <vector>

#include "models/families/kinds/shared.h"

namespace zoo {

// Llama and its relatives.

/// Choices of the Llama kind: RMSNorm before the sublayers, rotary positions, SwiGLU, no biases.
TransformerConfig llama_base();

/// LlamaConfig without its biases and rotary positions; of Mistral, Qwen and others too. `activation` is the
/// key of the gate's.
std::vector<ConfigKey> llama_keys(const std::string& activation = "hidden_act");

/// attention_bias, of all four projections.
ConfigKey attention_bias_key();

/// Choices of the Gemma kind: a Llama whose norms multiply by 1 + w, with GeGLU and scaled embeddings.
TransformerConfig gemma_base();

/// use_sliding_window, sliding_window, max_window_layers and layer_types of Qwen2 and Qwen3: a window in the
/// layers after the first max_window_layers.
std::vector<ConfigKey> qwen_window_keys();

/// Gemma2TextConfig without its rotary positions and layer_types; of Gemma 3 too.
std::vector<ConfigKey> gemma2_keys();

/// Weights of LlamaModel and its heads, and of decoders that differ from it in biases, norms of queries and
/// keys, or the places of the norms, as `config` says.
WeightTable llama_weights(const TransformerConfig& config);

// Decoders whose feed-forward is a mixture of experts.

/// num_experts_per_tok, output_router_logits and router_aux_loss_coef.
std::vector<ConfigKey> router_keys();

/// The number of experts under `name`, or under the name that transformers uses for another family.
ConfigKey num_experts_key(const std::string& name);

/// moe_intermediate_size, norm_topk_prob, decoder_sparse_step and mlp_only_layers of Qwen's mixtures: every
/// decoder_sparse_step-th layer has experts, except for those that mlp_only_layers lists.
std::vector<ConfigKey> qwen_expert_keys();

/// Names of an expert's three matrices in checkpoints.
struct ExpertNames {
  std::string gate = "gate_proj", up = "up_proj", down = "down_proj";
};

/// Adds the router and the experts, which are BLOCK.gate and BLOCK.experts.N.NAME in files. Files of
/// transformers 5 may hold all experts of a layer as MLP.experts.gate_up_proj and MLP.experts.down_proj.
void add_experts(WeightTable& table, const TransformerConfig& config, const std::string& block,
                 const ExpertNames& names = {});

}  // namespace zoo
