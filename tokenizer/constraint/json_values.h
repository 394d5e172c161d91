#pragma once

#include <cstdint>

#include "tokenizer/constraint/pattern.h"

namespace zoo {

/// A string in quotes whose characters fit the expression, as JSON writes them.
PatternPtr json_string_of(const PatternPtr& characters);

/// Integers in [least, most], written as JSON writes them.
PatternPtr integers_between(std::int64_t least, std::int64_t most);

}  // namespace zoo
