#pragma once

/// @file
/// Use:
///
///     const auto digits = zoo::repeat(zoo::one_of({{U'0', U'9'}}), /*least=*/1);
///     const auto number = zoo::sequence({zoo::optional(zoo::literal("-")), digits});

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace zoo {

struct Pattern;
using PatternPtr = std::shared_ptr<const Pattern>;

/// A set of texts that a regular expression describes: an immutable tree.
struct Pattern {
  enum class Kind { kCharacters, kSequence, kChoice, kRepeat, kBoth };
  using Ranges = std::vector<std::pair<char32_t, char32_t>>;  // both ends inclusive

  Kind kind = Kind::kSequence;
  Ranges characters;               // kCharacters: one of them
  std::vector<PatternPtr> parts;   // kSequence: in order; kChoice: the alternatives; kRepeat: the only one;
                                   // kBoth: the two that a text must fit
  int least = 0, most = kEndless;  // kRepeat

  static constexpr int kEndless = -1;
};

PatternPtr one_of(Pattern::Ranges characters);
PatternPtr literal(std::string_view text);  // UTF-8
PatternPtr sequence(std::vector<PatternPtr> parts);
PatternPtr choice(std::vector<PatternPtr> parts);
PatternPtr repeat(PatternPtr part, int least, int most = Pattern::kEndless);
PatternPtr optional(PatternPtr part);
/// The texts that fit both patterns.
PatternPtr both(PatternPtr one, PatternPtr other);

/// All code points outside the ranges, without surrogates.
Pattern::Ranges complement(Pattern::Ranges ranges);

}  // namespace zoo
