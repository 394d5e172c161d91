#pragma once

#include <string>
#include <vector>

#include "models/families/kinds/llama_kind.h"

namespace zoo {

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

/// llama_weights() with the router and the experts, BLOCK.gate and BLOCK.experts.N.NAME in files. Files of
/// transformers 5 may hold all experts of a layer as MLP.experts.gate_up_proj and MLP.experts.down_proj.
WeightTable llama_weights_with_experts(const TransformerConfig& config, const std::string& block,
                                       const ExpertNames& names = {});

}  // namespace zoo
