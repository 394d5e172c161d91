#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// SHA-256 (FIPS 180-4) of `bytes` as 64 lower-case hexadecimal digits.
std::string sha256(std::string_view bytes);

/// Name of a file's content in git: the SHA-1 of its length and itself, as 40 such digits.
std::string git_hash(std::string_view content);

/// Two lower-case digits per byte.
std::string hexadecimal(std::basic_string_view<unsigned char> bytes);

}  // namespace zoo
