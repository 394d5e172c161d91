#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zoo {

struct ProtobufField {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // of a number field
  std::string_view bytes;   // of a string or message field
};

/// The fields of one message of a sentencepiece model (protobuf.dev/programming-guides/encoding).
class ProtobufMessage {
 public:
  /// `what` names the file in error messages; both arguments must outlive the object.
  ProtobufMessage(std::string_view bytes, const std::string& what) : rest_(bytes), what_(what) {}

  /// The next field; nothing at the end. Throws Error "WHAT: damaged: …" if the field is incomplete.
  std::optional<ProtobufField> next();

 private:
  [[noreturn]] void fail() const;
  std::string_view take(std::uint64_t size);
  std::uint64_t varint();

  std::string_view rest_;
  const std::string& what_;
};

}  // namespace zoo
