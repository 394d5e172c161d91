#include "tokenizer/sentencepiece_file.h"

#include <bit>

#include "data/base/error.h"
#include "tokenizer/protobuf_message.h"
#include "tokenizer/sentencepiece_model_check.h"
#include "tokenizer/utf8.h"

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

}  // namespace

SentencePieceFile SentencePieceFile::parse(std::string_view model, const std::string& what) {
  constexpr std::uint64_t kPieces = 1, kNormalizer = 3, kCharsmap = 2;
  const SentencePieceTraits traits = check_sentencepiece_model(model, what);
  SentencePieceFile file{.is_unigram = traits.is_unigram, .has_byte_fallback = traits.has_byte_fallback};
  ProtobufMessage message(model, what);
  while (const auto field = message.next()) {
    if (field->number == kPieces) file.pieces.push_back(read_piece(field->bytes, what));
    if (field->number != kNormalizer) continue;
    ProtobufMessage normalizer(field->bytes, what);
    while (const auto part = normalizer.next()) {
      if (part->number == kCharsmap) file.charsmap = part->bytes;
    }
  }
  return file;
}

}  // namespace zoo
