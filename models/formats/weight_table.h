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
  /// Beginnings of names that never bear the prefix ("lm_head.").
  std::vector<std::string> unprefixed;
  /// Beginnings of names that only some heads have: of another head's checkpoint they are left unused.
  std::vector<std::string> of_heads;
  /// {copy, original}: a name that checkpoints may hold besides the weight it is tied to.
  std::vector<std::pair<std::string, std::string>> tied;
  /// {ending, older ending}: where a file has no name with the first, it may have one with the second.
  std::vector<std::pair<std::string, std::string>> renamed;
  /// Buffers that old checkpoints carry and nobody needs, "{}" for a layer's number.
  std::vector<std::string> ignored;
};

/// Adds the lines for "X.weight" and "X.bias" of each "X" in `modules`.
void add_weights_and_biases(WeightTable& table, const std::vector<WeightName>& modules);

/// The table with "{}" replaced by 0 … num_layers - 1, still without the prefix.
std::vector<WeightName> expand_layers(const std::vector<WeightName>& names, std::int64_t num_layers);

/// The name as a whole model writes it.
std::string with_prefix(const WeightTable& table, const std::string& name);

/// True for a name, still without the prefix, that only some heads have.
bool is_of_a_head(const WeightTable& table, const std::string& name);

/// `pattern` with "{}" replaced by the number.
std::string number_layer(const std::string& pattern, std::int64_t layer);

}  // namespace zoo
