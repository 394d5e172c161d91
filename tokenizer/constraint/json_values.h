#pragma once

#include <cstdint>

#include "tokenizer/constraint/pattern.h"

namespace zoo {

/// A JSON string whose unescaped characters fit the pattern.
PatternPtr json_string_of(const PatternPtr& characters);

/// The integers in [least, most] as JSON writes them.
PatternPtr integers_between(std::int64_t least, std::int64_t most);

}  // namespace zoo
