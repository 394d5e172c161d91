#pragma once

/// @file
/// Use:
///
///     const zoo::RegularExpression date = zoo::parse_regular_expression(
///         R"(\d{4}-\d\d-\d\d)", zoo::ExpressionDialect::kEcmaScript);
///     std::cout << zoo::ByteAutomaton(date.pattern).fits("2024-02-29") << "\n";  // byte_automaton.h

#include <string_view>

#include "tokenizer/constraint/pattern.h"

namespace zoo {

/// Syntax of a regular expression: Python's `re` for texts, or ECMA-262 with the flag u, as JSON Schema
/// requires. They differ in characters,
///
///           Python                              ECMAScript
///     .     all but \n                          all but \n, \r, U+2028 and U+2029
///     \d    decimal digits of scripts (Nd)      0 to 9
///     \w    letters and numbers (L, N) and _    A to Z, a to z, 0 to 9 and _
///     \s    str.isspace()                       WhiteSpace and LineTerminator
///
/// and in some notation.
///
/// Releases of Python differ in the letters and digits of new scripts: 3.9 has Unicode 13, later ones more. A
/// text must match in each, so such a character is neither in `\d` or `\w` nor in `\D` or `\W`.
enum class ExpressionDialect { kPython, kEcmaScript };

struct RegularExpression {
  PatternPtr pattern;
  bool begins = false, ends = false;  // it has the anchors ^ and $
};

/// Parses a regular expression of characters and
///
///     . [a-z] [^a-z] \d \w \s \D \W \S \n \t \r \f \v \0 \xHH \uHHHH
///     (…) (?:…) a|b * + ? {m} {m,} {m,n}, and the anchors ^ and $ at the ends
///
/// Python's also has \a, \UHHHHHHHH, {,n} and a literal ] at the beginning of a set; ECMAScript's also \cX,
/// \u{H…}, pairs of surrogates, [^] and ] as the end of any set. A lazy ? after a repetition has no effect.
/// Punctuation may be escaped by a \, and { } ] are literals where they are unambiguous, as in both languages
/// outside their strictest modes. Throws Error with the position of anything else, such as backreferences,
/// lookaround and repetitions of a repetition (possessive in Python).
RegularExpression parse_regular_expression(std::string_view text, ExpressionDialect dialect);

}  // namespace zoo
