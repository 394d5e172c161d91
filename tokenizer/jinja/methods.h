#pragma once

#include <optional>
#include <string_view>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/value.h"

namespace zoo::chat {

/// The method of the object; nothing if Python's object has none. Throws Fault for one of Python's that the
/// zoo lacks.
std::optional<std::string_view> method_of(const Value& object, std::string_view name);

Value call_method(const Method& method, const Arguments& arguments, Heap& heap);

}  // namespace zoo::chat
