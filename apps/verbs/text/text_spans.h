#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "tokenizer/encoding.h"

namespace zoo {

/// Adds "text", "start" and "end" of a part of a UTF-8 text, in characters as Hugging Face counts them.
void add_span(nlohmann::ordered_json& json, const std::string& text, const ByteRange& range);

/// Throws Error if the tokenizer did not tell where the tokens lie in their text.
void require_offsets(const Encoding& encoding);

}  // namespace zoo
