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

/// rope_theta and the scaling of rotary positions, as transformers 4 and 5 write them: the base is
/// `rope_theta` at the top or inside `rope_parameters`; the scaling is `rope_scaling`, or `rope_parameters`
/// with a rope_type of default, linear or llama3.
std::vector<ConfigKey> rope_keys();

/// Choices of the Llama kind: RMSNorm before the sublayers, rotary positions, SwiGLU, no biases.
TransformerConfig llama_base();

/// LlamaConfig without its biases; of Mistral, Qwen and others too.
std::vector<ConfigKey> llama_keys();

/// Weights of LlamaModel and its heads, with biases as `config` says.
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
