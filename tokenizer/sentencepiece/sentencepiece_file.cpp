#include "tokenizer/sentencepiece/sentencepiece_file.h"

#include <bit>

#include "data/base/error.h"
#include "tokenizer/sentencepiece/protobuf_message.h"
#include "tokenizer/sentencepiece/sentencepiece_model_check.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

SentencePieceFile::Piece read_piece(std::string_view bytes, const std::string& what) {
  SentencePieceFile::Piece piece;
  ProtobufMessage message(bytes, what);
  while (const auto field = message.next()) {
    if (field->number == 1) piece.text = field->bytes;
    if (field->number == 2) piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field->value));
    if (field->number == 3) piece.type = static_cast<SentencePieceFile::Type>(field->value);
  }
  require_utf8(piece.text, what + ": a piece");
  return piece;
}

void read_normalizer(std::string_view spec, const std::string& what, SentencePieceFile& file) {
  constexpr std::uint64_t kCharsmap = 2, kAddDummyPrefix = 3, kRemoveExtraWhitespaces = 4,
                          kEscapeWhitespaces = 5;
  ProtobufMessage message(spec, what);
  while (const auto field = message.next()) {
    if (field->number == kCharsmap) file.charsmap = field->bytes;
    if (field->number == kAddDummyPrefix) file.adds_prefix = field->value != 0;
    if (field->number == kRemoveExtraWhitespaces) file.removes_extra_spaces = field->value != 0;
    if (field->number == kEscapeWhitespaces) file.escapes_spaces = field->value != 0;
  }
}

void read_trainer(std::string_view spec, const std::string& what, SentencePieceFile& file) {
  constexpr std::uint64_t kTreatWhitespaceAsSuffix = 24;
  ProtobufMessage message(spec, what);
  while (const auto field = message.next()) {
    if (field->number == kTreatWhitespaceAsSuffix) file.space_is_suffix = field->value != 0;
  }
}

}  // namespace

SentencePieceFile SentencePieceFile::parse(std::string_view model, const std::string& what) {
  constexpr std::uint64_t kPieces = 1, kTrainer = 2, kNormalizer = 3;
  const SentencePieceTraits traits = check_sentencepiece_model(model, what);
  SentencePieceFile file{.is_unigram = traits.is_unigram, .has_byte_fallback = traits.has_byte_fallback};
  ProtobufMessage message(model, what);
  while (const auto field = message.next()) {
    if (field->number == kPieces) file.pieces.push_back(read_piece(field->bytes, what));
    if (field->number == kTrainer) read_trainer(field->bytes, what, file);
    if (field->number == kNormalizer) read_normalizer(field->bytes, what, file);
  }
  return file;
}

}  // namespace zoo
