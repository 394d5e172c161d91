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

/// layer_types: "sliding_attention" or "full_attention" for each layer. An absent key means the layers that
/// `by_default` names, or no change.
ConfigKey layer_types_key(bool (*by_default)(std::int64_t layer) = nullptr);

/// Rows of queries, keys and values in the weight that holds all three.
std::vector<std::int64_t> query_key_value_rows(const TransformerConfig& config);

/// NAMEForCausalLM, NAMEModel and NAMEForSequenceClassification.
std::vector<Family::HeadEntry> decoder_heads(const std::string& name);

}  // namespace zoo
