#pragma once

#include "tokenizer/constraint/pattern.h"

namespace zoo {

/// Whose regular expressions a text is read as. They differ in the characters of `.`, `\d`, `\w` and `\s`:
///
/// |      | kPython: `re` with texts             | kEcmaScript: ECMA-262 with the flag u, JSON Schema's
/// dialect |
/// |------|--------------------------------------|--------------------------------------------------------------|
/// | `.`  | all but \n                           | all but \n, \r, U+2028, U+2029 | | `\d` | decimal digits
/// of all scripts (Nd)   | 0 to 9                                                       | | `\w` | letters
/// and numbers (L, N), `_`      | A to Z, a to z, 0 to 9, `_`                                  | | `\s` |
/// str.isspace()                        | WhiteSpace and LineTerminator                                |
///
/// and in a few ways of writing (regular_expression.h). Both are of Unicode 16.
enum class ExpressionDialect { kPython, kEcmaScript };

/// The characters of `\d`, `\w` and `\s`.
const Pattern::Ranges& digits_of(ExpressionDialect dialect);
const Pattern::Ranges& words_of(ExpressionDialect dialect);
const Pattern::Ranges& spaces_of(ExpressionDialect dialect);
/// The line ends, which `.` does not match.
const Pattern::Ranges& line_ends_of(ExpressionDialect dialect);

}  // namespace zoo
