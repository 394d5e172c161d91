#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zoo {

/// Key of the checksums in a safetensors file's __metadata__ (SafetensorsFile).
inline constexpr const char* kChecksums = "crc32c";
constexpr std::size_t kChecksumDigits = 8;

/// A checksum in hexadecimal digits.
std::string checksum_text(std::uint32_t crc);

/// Where the digits begin in a header.
std::optional<std::size_t> place_of_checksums(std::string_view header);

/// Checksum of a header, in whose own digits at `place` zeros are counted.
std::uint32_t header_checksum(std::string_view header, std::size_t place);

}  // namespace zoo
