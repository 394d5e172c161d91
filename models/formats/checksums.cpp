#include "models/formats/checksums.h"

#include <array>
#include <cstdio>

#include "data/base/crc32c.h"

namespace zoo {

std::string checksum_text(std::uint32_t crc) {
  std::array<char, kChecksumDigits + 1> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x", static_cast<unsigned>(crc));
  return digits.data();
}

std::optional<std::size_t> place_of_checksums(std::string_view header) {
  const std::string key = std::string("\"") + kChecksums + "\":\"";
  const std::size_t found = header.find(key);
  if (found == std::string_view::npos || header.size() - found < key.size() + kChecksumDigits)
    return std::nullopt;
  return found + key.size();
}

std::uint32_t header_checksum(std::string_view header, std::size_t place) {
  const std::string zeros(kChecksumDigits, '0');
  const std::string_view after = header.substr(place + kChecksumDigits);
  const std::uint32_t before = crc32c(zeros.data(), zeros.size(), crc32c(header.data(), place));
  return crc32c(after.data(), after.size(), before);
}

}  // namespace zoo
