#pragma once

#include "models/families/kinds/rotary_keys.h"
#include "models/families/kinds/shared.h"

namespace zoo {

/// Choices of the Llama kind: RMSNorm before the sublayers, rotary positions, SwiGLU, no biases.
TransformerConfig llama_base();

/// LlamaConfig without its biases and rotary positions. `activation` and `epsilon` are the keys of the
/// feed-forward's activation and of the norms' epsilon.
std::vector<ConfigKey> llama_keys(const std::string& activation = "hidden_act",
                                  ActivationUse use = ActivationUse::kGate,
                                  const std::string& epsilon = "rms_norm_eps");

/// The same with rotary positions, of whole heads; of Mistral, Qwen and others too.
std::vector<ConfigKey> rotary_llama_keys();

/// attention_bias, of all four projections.
ConfigKey attention_bias_key();

/// Choices of the Gemma kind: a Llama whose norms multiply by 1 + w, with GeGLU and scaled embeddings.
TransformerConfig gemma_base();

/// use_sliding_window and sliding_window of Qwen's models.
ConfigKey qwen_window_key();

/// The same, with max_window_layers and layer_types of Qwen2 and Qwen3: a window in the layers after the
/// first max_window_layers.
std::vector<ConfigKey> qwen_window_keys();

/// Gemma2TextConfig without its rotary positions and layer_types; of Gemma 3 too.
std::vector<ConfigKey> gemma2_keys();

/// Weights of LlamaModel and its heads, and of decoders that differ from it in biases, norms of queries and
/// keys, or the places of the norms, as `config` says.
WeightTable llama_weights(const TransformerConfig& config);

}  // namespace zoo
