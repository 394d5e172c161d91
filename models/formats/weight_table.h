#pragma once

/// @file
/// Use:
///
///     zoo::WeightTable table;
///     table.prefix = "model.";
///     zoo::add_weights_and_biases(table, {{"stack.final_norm", {"norm"}}});
///     table.names = zoo::expand_layers(table.names, /*num_layers=*/12);

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zoo {

/// Layout of a weight in Hugging Face's checkpoint.
enum class WeightLayout {
  kSame,
  kTransposed,  ///< [in, out], like GPT-2's Conv1D
  /// Queries, keys and values of each key/value head together (GPT-NeoX, BLOOM, Falcon): `groups` groups,
  /// each with its share of our `rows`.
  kByHead,
  /// Rotary positions turn neighbours (x[2i], x[2i + 1]) of a head where ours turn (x[i], x[i + P]): queries
  /// and keys, the first two names, have their heads' rows in that order (GPT-J).
  kRotaryPairs,
  /// Rotary positions turn the other way (nanochat): queries and keys, the first two names, have the halves
  /// of their heads, `pairs` rows each, swapped.
  kRotaryReversed,
};

/// One line of a family's table: our parameter and the checkpoint tensors that hold it. "{}" stands for the
/// layer number. Several names are stacked along the first dimension (e.g. query, key and value).
struct WeightName {
  std::string ours;
  std::vector<std::string> theirs;
  WeightLayout layout = WeightLayout::kSame;
  /// Rows of each of several names; empty: all have the same number.
  std::vector<std::int64_t> rows = {};
  std::int64_t groups = 0;  // of kByHead; of kRotaryPairs: number of heads
  std::int64_t pairs = 0;   // P of kRotaryPairs, kRotaryReversed
  bool optional = false;    // a file may lack it: the model then keeps its own numbers
  /// Names that files may hold instead: rows [theirs …] in the same order, in as many equal parts.
  std::vector<std::string> others = {};
  /// A tensor [E, rows, columns] that files may hold instead of these names, `experts` = E: all experts'
  /// matrices, as transformers 5 has them in memory.
  std::string joined = {};
  std::int64_t experts = 0;
};

/// All weight names of a family.
struct WeightTable {
  std::vector<WeightName> names;
  /// Prefix of all names except the head's in a whole model; a bare model omits it ("transformer.").
  std::string prefix;
  /// Prefixes of names that only some heads have; another head's checkpoint leaves them unused. The first
  /// never have `prefix` ("lm_head.").
  std::vector<std::string> unprefixed, of_heads;
  /// {copy, original}: a name that checkpoints may hold besides the weight that it is tied to.
  std::vector<std::pair<std::string, std::string>> tied;
  bool writes_tied = false;  // a saved model has the copies, too
  /// {ending, older ending}: if a file lacks a name with the first, it may have one with the second.
  std::vector<std::pair<std::string, std::string>> renamed;
  /// {module in files, the class's own name}: where PEFT's adapters, which have the class's, differ.
  std::vector<std::pair<std::string, std::string>> modules;
  /// Hugging Face's class always has biases: those that the model lacks are zeros in files.
  bool has_all_biases = false;
  /// Unused buffers of old checkpoints, with "{}" for the layer number.
  std::vector<std::string> ignored;
};

template <class Entry> std::vector<Entry> concatenated(std::vector<Entry> a, const std::vector<Entry>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Adds the lines for "X.weight" and "X.bias" of each "X" in `modules`.
void add_weights_and_biases(WeightTable& table, const std::vector<WeightName>& modules);

/// Replaces "{}" by 0 … num_layers - 1; adds no prefix.
std::vector<WeightName> expand_layers(const std::vector<WeightName>& names, std::int64_t num_layers);

/// Name in a whole model.
std::string with_prefix(const WeightTable& table, const std::string& name);

/// The name of a tensor or module in Hugging Face's class of the whole model, and the table's for that.
std::string in_class(const WeightTable& table, const std::string& name);
std::string in_table(const WeightTable& table, const std::string& name);

/// True if only some heads have this name, which has no prefix yet.
bool is_of_a_head(const WeightTable& table, const std::string& name);

/// Replaces "{}" in `pattern` by the number.
std::string number_layer(const std::string& pattern, std::int64_t layer);

}  // namespace zoo
