#pragma once

#include <string_view>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/value.h"

namespace zoo::chat {

/// The filters, such as `| trim`, and the tests, such as `is defined`, of jinja2 and transformers. Throw
/// Fault for one that the zoo lacks.
Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments, Heap& heap);
bool apply_test(std::string_view name, const Value& value, const Arguments& arguments, Heap& heap);

}  // namespace zoo::chat
