#include "tokenizer/sentencepiece/protobuf_message.h"

#include <cstring>

#include "data/base/error.h"

namespace zoo {

void ProtobufMessage::fail() const {
  throw Error(what_, ": damaged: expected a sentencepiece model");
}

std::optional<ProtobufField> ProtobufMessage::next() {
  if (rest_.empty()) return std::nullopt;
  const std::uint64_t tag = varint();
  ProtobufField field;
  field.number = tag >> 3;
  switch (tag & 7) {
    case 0:
      field.value = varint();
      break;
    case 1:
      field.bytes = take(8);
      break;
    case 2:
      field.bytes = take(varint());
      break;
    case 5: {
      field.bytes = take(4);
      std::uint32_t value;
      std::memcpy(&value, field.bytes.data(), sizeof value);
      field.value = value;
      break;
    }
    default:
      fail();
  }
  if (field.number == 0) fail();
  return field;
}

std::string_view ProtobufMessage::take(std::uint64_t size) {
  if (size > rest_.size()) fail();
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

std::uint64_t ProtobufMessage::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail();
}

}  // namespace zoo
