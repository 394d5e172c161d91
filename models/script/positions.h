#pragma once

#include <string>

#include "models/layers/transformer_config.h"

namespace zoo::script {

// Methods of a stack for values that depend only on positions.

/// rotary_table[_in_window](length, past, x) -> [] or [cos, sin]; `kind` is the end of its name.
std::string rotary_table_method(const TransformerConfig& config, bool window, const std::string& kind);

/// position_scores(distances, table or x) -> [1, H, T, S] of T5's buckets or ALiBi, or
/// distance_table(attention_mask, length, x) -> [vectors, rows, padding] of disentangled attention; none for
/// other positions.
std::string position_methods(const TransformerConfig& config);

}  // namespace zoo::script
