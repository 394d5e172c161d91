#include "tokenizer/sentencepiece/sentencepiece_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "data/base/error.h"
#include "tokenizer/text/charsmap.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

struct ProtobufField {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // of a number field
  std::string_view bytes;   // of a string or message field
};

// The fields of one message of a sentencepiece model (protobuf.dev/programming-guides/encoding).
class ProtobufMessage {
 public:
  // `what` names the file in error messages; both arguments must outlive the object.
  ProtobufMessage(std::string_view bytes, const std::string& what) : rest_(bytes), what_(what) {}

  // The next field; nothing at the end. Throws Error "WHAT: damaged: …" if the field is incomplete.
  std::optional<ProtobufField> next() {
    if (rest_.empty()) return std::nullopt;
    const std::uint64_t tag = varint();
    ProtobufField field;
    field.number = tag >> 3;
    switch (tag & 7) {
      case 0: field.value = varint(); break;
      case 1: field.bytes = take(8); break;
      case 2: field.bytes = take(varint()); break;
      case 5: {
        field.bytes = take(4);
        std::uint32_t value;
        std::memcpy(&value, field.bytes.data(), sizeof value);
        field.value = value;
        break;
      }
      default: fail();
    }
    if (field.number == 0) fail();
    return field;
  }

 private:
  [[noreturn]] void fail() const { throw Error(what_, ": damaged: expected a sentencepiece model"); }

  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) fail();
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

  std::string_view rest_;
  const std::string& what_;
};

// The size of the library's buffer for user-defined symbols that match at one position.
constexpr std::size_t kMaxNestedSymbols = 64;

SentencePieceFile::Piece read_piece(std::string_view bytes, const std::string& what, std::size_t number) {
  SentencePieceFile::Piece piece;
  ProtobufMessage message(bytes, what);
  while (const auto field = message.next()) {
    if (field->number == 1) piece.text = field->bytes;
    if (field->number == 2) piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field->value));
    if (field->number == 3) piece.type = static_cast<SentencePieceFile::Type>(field->value);
  }
  if (!std::isfinite(piece.score))
    throw Error(what, ": damaged: the score of piece ", number, " is not a number");
  if (piece.text.find('\0') != piece.text.npos)
    throw Error(what, ": piece ", number, " holds a zero byte, which sentencepiece cannot match");
  return piece;
}

void read_normalizer(std::string_view spec, const std::string& what, SentencePieceFile& file) {
  constexpr std::uint64_t kName = 1, kCharsmap = 2, kAddDummyPrefix = 3, kRemoveExtraWhitespaces = 4,
                          kEscapeWhitespaces = 5;
  ProtobufMessage message(spec, what);
  while (const auto field = message.next()) {
    if (field->number == kName) file.normalization = field->bytes;
    if (field->number == kCharsmap) file.charsmap = field->bytes;
    if (field->number == kCharsmap && !is_valid_charsmap(field->bytes))
      throw Error(what, ": damaged: its normalization table points outside itself");
    if (field->number == kAddDummyPrefix) file.adds_prefix = field->value != 0;
    if (field->number == kRemoveExtraWhitespaces) file.removes_extra_spaces = field->value != 0;
    if (field->number == kEscapeWhitespaces) file.escapes_spaces = field->value != 0;
  }
}

void read_trainer(std::string_view spec, const std::string& what, SentencePieceFile& file) {
  constexpr std::uint64_t kModelType = 3, kTreatWhitespaceAsSuffix = 24, kByteFallback = 35, kUnigram = 1;
  ProtobufMessage message(spec, what);
  while (const auto field = message.next()) {
    if (field->number == kModelType) file.is_unigram = field->value == kUnigram;
    if (field->number == kTreatWhitespaceAsSuffix) file.space_is_suffix = field->value != 0;
    if (field->number == kByteFallback) file.has_byte_fallback = field->value != 0;
  }
}

// The number of symbols that can match at one position: the longest chain of prefixes.
std::size_t longest_chain(std::vector<std::string_view> symbols) {
  std::ranges::sort(symbols);
  std::vector<std::string_view> chain;
  std::size_t longest = 0;
  for (const std::string_view symbol : symbols) {
    while (!chain.empty() && !symbol.starts_with(chain.back())) chain.pop_back();
    chain.push_back(symbol);
    longest = std::max(longest, chain.size());
  }
  return longest;
}

}  // namespace

SentencePieceFile SentencePieceFile::parse(std::string_view model, const std::string& what) {
  constexpr std::uint64_t kPieces = 1, kTrainer = 2, kNormalizer = 3, kDenormalizer = 5;
  SentencePieceFile file, of_denormalizer;
  ProtobufMessage message(model, what);
  while (const auto field = message.next()) {
    if (field->number == kPieces) file.pieces.push_back(read_piece(field->bytes, what, file.pieces.size()));
    if (field->number == kTrainer) read_trainer(field->bytes, what, file);
    if (field->number == kNormalizer) read_normalizer(field->bytes, what, file);
    if (field->number == kDenormalizer) read_normalizer(field->bytes, what, of_denormalizer);
  }
  if (file.pieces.empty()) throw Error(what, ": has no pieces: expected a sentencepiece model");
  std::vector<std::string_view> symbols;
  for (const Piece& piece : file.pieces)
    if (piece.type == Type::user_defined) symbols.push_back(piece.text);
  if (longest_chain(std::move(symbols)) > kMaxNestedSymbols)
    throw Error(what, ": more than ", kMaxNestedSymbols, " user-defined symbols begin with one another");
  return file;
}

void SentencePieceFile::require_utf8_pieces(const std::string& what) const {
  for (const Piece& piece : pieces) require_utf8(piece.text, what + ": a piece");
}

}  // namespace zoo
