#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace zoo {

/// The lowest `size` bytes of a number, the lowest first.
inline std::string little_endian(std::uint64_t number, std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xFF);
  return bytes;
}

/// A message of protocol buffers, written field by field.
class ProtobufMessage {
 public:
  void number(int field, std::int64_t value) {
    tag(field, 0);
    varint(static_cast<std::uint64_t>(value));
  }
  void real(int field, float value) {
    tag(field, 5);
    bytes_ += little_endian(std::bit_cast<std::uint32_t>(value), sizeof value);
  }
  void real(int field, double value) {
    tag(field, 1);
    bytes_ += little_endian(std::bit_cast<std::uint64_t>(value), sizeof value);
  }
  void text(int field, std::string_view text) {
    begin(field, text.size());
    bytes_ += text;
  }
  void message(int field, const ProtobufMessage& inner) { text(field, inner.bytes_); }
  /// The head of a field whose bytes follow.
  void begin(int field, std::size_t size) {
    tag(field, 2);
    varint(size);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void tag(int field, std::uint64_t type) { varint(static_cast<std::uint64_t>(field) << 3 | type); }
  void varint(std::uint64_t value) {
    for (; value > 0x7F; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace zoo
