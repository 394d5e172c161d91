#pragma once

#include <cstdint>
#include <string_view>

#include "tokenizer/constraint/pattern.h"

namespace zoo {

/// The texts in which an unanchored JSON Schema `pattern` finds a match; `any` is a character beside it.
PatternPtr searched_text(std::string_view expression, const PatternPtr& any);

/// A JSON string whose unescaped characters fit the pattern.
PatternPtr json_string_of(const PatternPtr& characters);

inline constexpr std::int64_t kLargestInteger = 999'999'999'999'999;  // also exact as a double

/// The integers in [least, most] in JSON.
PatternPtr integers_between(std::int64_t least, std::int64_t most);

struct NumberRange {
  double least, most;                                // of at most 15 digits
  bool least_is_open = false, most_is_open = false;  // the bound itself is not in the range

  bool is_empty() const { return most < least || (most == least && (least_is_open || most_is_open)); }
};

/// True if a number has at most 15 decimal digits, so that a double distinguishes it from others that have.
bool has_few_digits(double number);

/// Integers and decimal fractions in a range. At most 15 digits before and 15 after the point; near a bound
/// that is open or no integer, so few that a double can distinguish the number from the bound.
PatternPtr numbers_between(const NumberRange& range);

}  // namespace zoo
