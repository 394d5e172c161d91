#pragma once

#include "tokenizer/jinja/arguments.h"

namespace zoo::chat {

/// Calls a function of the environment: raise_exception, strftime_now, namespace, range or dict.
Value call_function(std::string_view name, const Arguments& arguments, Heap& heap);

}  // namespace zoo::chat
