#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// The value at a JSON pointer (RFC 6901) written as the fragment of a URI: "/$defs/a~1b%25". Null if the
/// pointer is malformed or nothing is there.
const nlohmann::ordered_json* find_by_pointer(const nlohmann::ordered_json& root, std::string_view fragment);

}  // namespace zoo
