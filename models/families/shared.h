#pragma once

#include "models/family.h"
#include "models/formats/config_keys.h"

namespace zoo {

// Keys and weight names that several families have in common.

/// a, then b.
template <class Entry>
std::vector<Entry> concatenated(std::vector<Entry> a, const std::vector<Entry>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The keys of all parts, in order.
std::vector<ConfigKey> concatenated(std::initializer_list<std::vector<ConfigKey>> parts);

/// rope_theta and the scaling of rotary positions, as transformers 4 and 5 write them: the base is
/// `rope_theta` at the top or inside `rope_parameters`; the scaling is `rope_scaling`, or `rope_parameters`
/// with a rope_type of default, linear, llama3 or yarn.
ConfigKey rope_key();

/// The same for families whose heads rotate whole: another partial_rotary_factor than 1 is refused.
std::vector<ConfigKey> rope_keys();

/// The share of a head's dimensions that rotate, at the top under `name` or as partial_rotary_factor inside
/// `rope_parameters`; `absent` without either.
ConfigKey partial_rotary_key(const std::string& name, double absent);

/// layer_types: "sliding_attention" or "full_attention" for each layer. An absent key means the layers that
/// `by_default` names, or no change.
ConfigKey layer_types_key(bool (*by_default)(std::int64_t layer) = nullptr);

/// Rows of queries, keys and values in the weight that holds all three.
std::vector<std::int64_t> query_key_value_rows(const TransformerConfig& config);

/// NAMEForCausalLM, NAMEModel and NAMEForSequenceClassification.
std::vector<Family::HeadEntry> decoder_heads(const std::string& name);

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

/// Choices of the BERT kind: a post-LN encoder with learned positions, segments and GELU.
TransformerConfig bert_base();

/// BertConfig without the dropout of its classifiers; of RoBERTa and ALBERT too.
std::vector<ConfigKey> bert_keys();

/// The dropout of heads that classify. An absent key, or null, says that of the hidden states.
ConfigKey classifier_dropout_key();

/// Weights of BertModel: the embeddings and the layers.
std::vector<WeightName> bert_weights();

/// Adds the projection of a masked-lm head, `decoder` in Hugging Face's names, whose bias has two names.
void add_masked_lm_projection(WeightTable& table, const TransformerConfig& config, const std::string& decoder,
                              const std::string& bias);

}  // namespace zoo
