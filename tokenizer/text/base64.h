#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace zoo {

/// The bytes that base64 (RFC 4648, padded) stands for; nothing if it is not base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace zoo
