#pragma once

#include "models/families/kinds/shared.h"

namespace zoo {

// BART and its relatives: encoder-decoders whose stacks share a token table, all of whose products have
// biases.

/// Choices of the BART kind: post-LN, learned positions and a norm of embeddings in both stacks, GELU.
TransformerConfig bart_base();

/// BartConfig's keys. The stacks differ in their number of layers alone.
std::vector<ConfigKey> bart_keys();

/// The keys of the heads that classify and answer, for a class whose sequences have `labels` labels by
/// default.
std::vector<ConfigKey> bart_head_keys(std::int64_t labels);

/// Weights of BartModel and its head.
WeightTable bart_weights(const TransformerConfig& config);

/// NAMEForConditionalGeneration (or `generator`) and NAMEModel.
std::vector<Family::HeadEntry> bart_heads(const std::string& name, const std::string& generator = "");

/// NAMEForSequenceClassification and NAMEForQuestionAnswering.
std::vector<Family::HeadEntry> bart_classifiers(const std::string& name);

/// `base` with both stacks of this size.
TransformerConfig bart_sized(TransformerConfig base, const Sizes& sizes);

}  // namespace zoo
