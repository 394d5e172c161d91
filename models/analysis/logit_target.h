#pragma once

/// @file
/// Use:
///
///     const zoo::ModelOutput output = model.forward({.input_ids = ids_of_rows});
///     const double probability = zoo::analysis::measure(model, output, {.token = 42});  // at the end
///     const double difference =
///         zoo::analysis::measure(model, output, {.token = 42, .other = 7});  // of two logits

#include <optional>

#include "models/model.h"

namespace zoo::analysis {

/// The answer whose change an analysis measures.
struct LogitTarget {
  std::int64_t token = 0;             // id in the vocabulary, or number of a classifier's label
  std::optional<std::int64_t> other;  // measure the difference of both logits instead
  std::int64_t position = -1;         // in [0, T); -1: the last. A classifier of sequences has none
};

/// Logits [V] of the model's output, first row, at the position, float32. Throws c10::Error for a model whose
/// logits are not a distribution over tokens or labels (spans, replaced-token flags, regression, several
/// labels at once), a position outside its sequence, and a token outside [0, V).
at::Tensor target_logits(const Model& model, const ModelOutput& output, const LogitTarget& target);

/// The token's probability; with `other` logit(token) - logit(other).
double measure(const Model& model, const ModelOutput& output, const LogitTarget& target);

}  // namespace zoo::analysis
