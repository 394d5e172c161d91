#pragma once

#include <cstdint>
#include <string_view>

#include "tokenizer/constraint/pattern.h"

namespace zoo {

/// The texts in which an unanchored JSON Schema `pattern` finds a match; `any` is a character outside of it.
PatternPtr searched_text(std::string_view expression, const PatternPtr& any);

/// A JSON string whose unescaped characters fit the pattern.
PatternPtr json_string_of(const PatternPtr& characters);

/// The integers in [least, most] as JSON writes them.
PatternPtr integers_between(std::int64_t least, std::int64_t most);

struct NumberRange {
  std::int64_t least, most;
  bool least_is_open = false, most_is_open = false;  // the bound itself is not in the range
};

/// Integers and decimal fractions in a range. No number has more than 15 digits before or 15 after the point;
/// beside an open bound they are few enough for a double to tell the number from the bound.
PatternPtr numbers_between(const NumberRange& range);

}  // namespace zoo
