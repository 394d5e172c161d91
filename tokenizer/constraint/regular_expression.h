#pragma once

#include <string_view>

#include "tokenizer/constraint/pattern.h"

namespace zoo {

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
