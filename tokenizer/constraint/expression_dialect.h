#pragma once

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
/// and in some notation (regular_expression.h).
///
/// Releases of Python differ in the letters and digits of new scripts: 3.9 has Unicode 13, later ones more. A
/// text must match in each, so such a character is neither in `\d` or `\w` nor in `\D` or `\W`.
enum class ExpressionDialect { kPython, kEcmaScript };

/// The characters of a class in every release of the language, or in any release, up to Unicode 16.
enum class Extent { kEvery, kAny };

/// The characters of `\d`, `\w` and `\s`.
const Pattern::Ranges& digits_of(ExpressionDialect dialect, Extent extent);
const Pattern::Ranges& words_of(ExpressionDialect dialect, Extent extent);
const Pattern::Ranges& spaces_of(ExpressionDialect dialect);
/// The line ends, which `.` does not match.
const Pattern::Ranges& line_ends_of(ExpressionDialect dialect);

}  // namespace zoo
