#pragma once

/// @file
/// Use:
///
///     const zoo::RegularExpression date = zoo::parse_regular_expression(R"(\d{4}-\d\d-\d\d)");
///     std::cout << zoo::ByteAutomaton(date.pattern).fits("2024-02-29") << "\n";  // byte_automaton.h

#include <string_view>

#include "tokenizer/constraint/pattern.h"

namespace zoo {

struct RegularExpression {
  PatternPtr pattern;
  bool begins = false, ends = false;  // it has the anchors ^ and $
};

/// Reads a regular expression of characters and
///
///     . [a-z] [^a-z] \d \w \s \D \W \S \n \t \r \f \v \xHH \uHHHH
///     (…) (?:…) a|b * + ? {m} {m,} {m,n}, and the anchors ^ and $ at the ends
///
/// A lazy ? after a repetition changes nothing. `\d`, `\w` and `\s` are those of ASCII; `\S` is no space of
/// Unicode and the dot no line end of ECMA-262, so that ECMA-262 and Python both match the texts. Throws
/// Error with the position of anything else, such as backreferences and lookaround.
RegularExpression parse_regular_expression(std::string_view text);

}  // namespace zoo
