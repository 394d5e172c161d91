#pragma once

#include <cstddef>
#include <cstdint>

namespace zoo {

/// CRC-32C (Castagnoli; RFC 3720, section 12.1): detects every change of one to three bits, and of up to 32
/// neighbouring bits. `before` is the checksum of the preceding bytes.
std::uint32_t crc32c(const void* bytes, std::size_t size, std::uint32_t before = 0);

}  // namespace zoo
