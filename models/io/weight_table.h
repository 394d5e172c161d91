#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zoo {

/// How Hugging Face keeps a weight.
enum class WeightLayout {
  kSame,
  kTransposed,  ///< [in, out], as GPT-2's Conv1D
};

/// One line of a family's table: our parameter and the tensors of a checkpoint that hold it. "{}" stands for
/// the number of the layer. Several names are stacked along the first dimension (query, key and value, say).
struct WeightName {
  std::string ours;
  std::vector<std::string> theirs;
  WeightLayout layout = WeightLayout::kSame;
  /// How many rows each of several names has; empty: all the same.
  std::vector<std::int64_t> rows = {};
};

/// All names of a family.
struct WeightTable {
  std::vector<WeightName> names;
  /// What a whole model writes before each name but those of its head, and a bare model leaves out
  /// ("transformer.").
  std::string prefix;
  /// Names that never bear the prefix ("lm_head.weight").
  std::vector<std::string> unprefixed;
  /// {copy, original}: a name that checkpoints may hold besides the weight it is tied to.
  std::vector<std::pair<std::string, std::string>> tied;
  /// Buffers that old checkpoints carry and nobody needs, "{}" for a layer's number.
  std::vector<std::string> ignored;
};

/// The table with "{}" replaced by 0 … num_layers - 1, still without the prefix.
std::vector<WeightName> expand_layers(const std::vector<WeightName>& names, std::int64_t num_layers);

/// The name as a whole model writes it.
std::string with_prefix(const WeightTable& table, const std::string& name);

/// `pattern` with "{}" replaced by the number.
std::string number_layer(const std::string& pattern, std::int64_t layer);

}  // namespace zoo
