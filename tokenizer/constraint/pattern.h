#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zoo {

struct Pattern;
using PatternPtr = std::shared_ptr<const Pattern>;

/// A set of texts, as a regular expression describes it. A tree that is never changed.
struct Pattern {
  enum class Kind { kCharacters, kSequence, kChoice, kRepeat };
  using Ranges = std::vector<std::pair<char32_t, char32_t>>;  // both ends in it

  Kind kind = Kind::kSequence;
  Ranges characters;  // kCharacters: one of them
  std::vector<PatternPtr>
      parts;  // kSequence: one behind the other; kChoice: one of them; kRepeat: the only one
  int least = 0, most = kEndless;  // kRepeat

  static constexpr int kEndless = -1;
};

PatternPtr one_of(Pattern::Ranges characters);
PatternPtr literal(std::string_view text);  // UTF-8
PatternPtr sequence(std::vector<PatternPtr> parts);
PatternPtr choice(std::vector<PatternPtr> parts);
PatternPtr repeat(PatternPtr part, int least, int most = Pattern::kEndless);
PatternPtr optional(PatternPtr part);

/// All code points that are not in the ranges; surrogates are in neither.
Pattern::Ranges complement(Pattern::Ranges ranges);

struct RegularExpression {
  PatternPtr pattern;
  bool begins = false, ends = false;  // whether it had the anchors ^ and $
};

/// Reads a regular expression: characters, . [a-z] [^a-z] \d \w \s \D \W \S \n \t \r \f \v \xHH \uHHHH,
/// groups (…) and (?:…), a|b, * + ? {m} {m,} {m,n} (a ? behind them changes nothing here), and the anchors ^
/// and $ at the ends. \d \w \s are ASCII's. Throws Error with the place for anything else, such as
/// backreferences and lookaround.
RegularExpression parse_regular_expression(std::string_view text);

}  // namespace zoo
