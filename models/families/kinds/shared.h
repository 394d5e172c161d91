#pragma once

#include <functional>

#include "models/family.h"
#include "models/formats/config_keys.h"

namespace zoo {

namespace family {
using C = TransformerConfig;
}

/// The keys of all parts, in order.
std::vector<ConfigKey> concatenated(std::initializer_list<std::vector<ConfigKey>> parts);

/// Required keys of the sizes that most families name alike.
std::vector<ConfigKey> usual_size_keys();

/// initializer_range, tie_word_embeddings, pad_token_id and labels, as most families have them.
std::vector<ConfigKey> usual_end_keys();

/// layer_types: "sliding_attention" or "full_attention" for each layer. An absent key means the layers that
/// `by_default` names, or no change.
ConfigKey layer_types_key(bool (*by_default)(std::int64_t layer) = nullptr);

/// Sizes of a preset; 0: as in the configuration that it starts from.
struct Sizes {
  std::int64_t vocabulary, hidden, layers, heads, inner = 0, kv_heads = 0;
};
TransformerConfig of_size(TransformerConfig config, const Sizes& sizes, std::int64_t max_positions = 0);

/// BEFORE + "q" + AFTER, and the same of k and v: the weights of queries, keys and values.
std::vector<std::string> q_k_v(const std::string& before, const std::string& after = "");

/// Names for add_weights_and_biases() of projections that lie by head, as Megatron's checkpoints have them:
/// ATTENTION.query_key_value and .dense, BLOCK.mlp.dense_h_to_4h and .dense_4h_to_h.
std::vector<WeightName> joint_projections(const TransformerConfig& config, const std::string& block,
                                          const std::string& attention);

/// Adds a language model's output, `lm_head` in Hugging Face's names, tied to `embedding` if `config` says
/// so, and sets what the names of a decoder's base model begin with.
void add_decoder_heads(WeightTable& table, const TransformerConfig& config, const std::string& prefix,
                       const std::string& embedding, const std::string& lm_head = "lm_head");

/// Adds the output of a masked language model, `decoder` in Hugging Face's names, whose bias is its own and
/// whose weight is tied to `embedding` if `config` says so.
void add_decoder_with_bias(WeightTable& table, const TransformerConfig& config, const std::string& decoder,
                           const std::string& embedding);

/// `key`, after which `read` checks or changes what it has read.
ConfigKey then_read(ConfigKey key,
                    const std::function<void(const ConfigReader& reader, TransformerConfig& config)>& read);

/// optional_key() whose value must be above 0, which in our field means something else.
template <class Number> ConfigKey positive_key(const std::string& name, Number TransformerConfig::*field) {
  return then_read(optional_key(name, field), [=](const ConfigReader& reader, TransformerConfig& config) {
    if (!(config.*field > 0)) reader.refuse(name.c_str(), "expected a positive number");
  });
}

/// True or false for the two values of a choice. An absent key leaves the field as it is.
template <class Choice>
ConfigKey choice_key(const std::string& name, Choice TransformerConfig::*field, Choice if_true,
                     Choice if_false);

/// A size that must equal `field`, which the family's key `other` sets.
ConfigKey same_size_key(const std::string& name, std::int64_t TransformerConfig::*field,
                        const std::string& other);

/// Keys of GPT2Config that GPTBigCode and GPT-J have too: sizes but the number of positions, activation,
/// dropouts, labels, and those that transformers reads for no decoder.
std::vector<ConfigKey> gpt_keys();

/// The causal mask of GPT-2's classes, a buffer in files before transformers 4.31.
std::vector<std::string> gpt_mask_buffers();

/// has(layer) for each of `count` layers; nothing where no model has so many.
std::vector<bool> by_layer(std::int64_t count, const std::function<bool(std::int64_t layer)>& has);

/// pad_token_id, which must be an id: positions are counted from it.
ConfigKey required_pad_token_key();

/// NAMEForCausalLM, NAMEModel and NAMEForSequenceClassification.
std::vector<Family::HeadEntry> decoder_heads(const std::string& name);

/// NAMEModel, NAMEForMaskedLM and those that classify sequences, tokens and the ends of an answer.
std::vector<Family::HeadEntry> encoder_heads(const std::string& name);

}  // namespace zoo
