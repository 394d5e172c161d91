#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace zoo {

/// Base64 (RFC 4648) of the bytes, padded.
std::string encode_base64(std::string_view bytes);

/// The bytes of a padded base64 text; nothing if the text is not base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace zoo
