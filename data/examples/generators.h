#pragma once

/// @file
/// Use:
///
///     std::cout << zoo::make_toy_set("addition", /*count=*/10, /*seed=*/1);
///     const std::string pairs = zoo::make_toy_pairs("reverse", 10, 1);  // question, tab, answer

#include <cstdint>
#include <string>
#include <vector>

namespace zoo {

struct ToySet {
  std::string name, description, example;
  std::int64_t examples = 20000;  // number if it is named as a dataset
};

/// The sets of `tzoo data make`. copy, reverse, sort, addition: a question and its answer; reviews: text and
/// label; names: words with labels, an empty line after each sentence; questions: question, context and
/// answer; translation, translation-held-out: source and target (translations.h).
const std::vector<ToySet>& toy_sets();
std::vector<std::string> toy_set_names();

/// `count` examples of a toy set. An example is a pure function of (name, seed, its number), the same on
/// every platform. Throws Error for an unknown name or a count outside [1, 10,000,000].
std::string make_toy_set(const std::string& name, std::int64_t count, std::uint64_t seed);

/// The same with a tab between question and answer, "3 1 2\t2 1 3", for seq2seq.
std::string make_toy_pairs(const std::string& name, std::int64_t count, std::uint64_t seed);

bool is_toy_set(const std::string& name);

/// Throws Error with the nearest name if the set is unknown.
const ToySet& find_toy_set(const std::string& name);

}  // namespace zoo
