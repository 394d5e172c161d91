#include "tokenizer/sentencepiece/sentencepiece_model_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "data/base/error.h"
#include "tokenizer/sentencepiece/protobuf_message.h"
#include "tokenizer/text/charsmap.h"

namespace zoo {
namespace {

// The library's buffer for the user-defined symbols that match at one place.
constexpr std::size_t kMaxNestedSymbols = 64;

void read_normalizer(std::string_view spec, const std::string& what, SentencePieceTraits& traits) {
  constexpr std::uint64_t kName = 1, kPrecompiledCharsmap = 2, kRemoveExtraWhitespaces = 4;
  ProtobufMessage message(spec, what);
  while (const auto field = message.next()) {
    if (field->number == kName) traits.normalization = field->bytes;
    if (field->number == kRemoveExtraWhitespaces) traits.removes_extra_whitespaces = field->value != 0;
    if (field->number == kPrecompiledCharsmap && !is_sound_charsmap(field->bytes)) {
      throw Error(what, ": damaged: its normalization table points outside itself");
    }
  }
}

void read_trainer(std::string_view spec, const std::string& what, SentencePieceTraits& traits) {
  constexpr std::uint64_t kModelType = 3, kByteFallback = 35, kUnigram = 1;
  ProtobufMessage message(spec, what);
  while (const auto field = message.next()) {
    if (field->number == kModelType) traits.is_unigram = field->value == kUnigram;
    if (field->number == kByteFallback) traits.has_byte_fallback = field->value != 0;
  }
}

struct CheckedPiece {
  std::string_view text;
  float score = 0;
  std::uint64_t type = 1;
};

CheckedPiece read_checked_piece(std::string_view bytes, const std::string& what) {
  CheckedPiece piece;
  ProtobufMessage message(bytes, what);
  while (const auto field = message.next()) {
    if (field->number == 1) piece.text = field->bytes;
    if (field->number == 2) piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field->value));
    if (field->number == 3) piece.type = field->value;
  }
  return piece;
}

// How many symbols can match at one place: the longest chain in which each is the start of the next.
std::size_t longest_chain(std::vector<std::string_view> symbols) {
  std::sort(symbols.begin(), symbols.end());
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

SentencePieceTraits check_sentencepiece_model(std::string_view model, const std::string& what) {
  constexpr std::uint64_t kPieces = 1, kTrainer = 2, kNormalizer = 3, kDenormalizer = 5, kUserDefined = 4;
  SentencePieceTraits traits, of_denormalizer;
  std::vector<std::string_view> symbols;
  std::size_t count = 0;
  ProtobufMessage message(model, what);
  while (const auto field = message.next()) {
    if (field->number == kTrainer) read_trainer(field->bytes, what, traits);
    if (field->number == kNormalizer) read_normalizer(field->bytes, what, traits);
    if (field->number == kDenormalizer) read_normalizer(field->bytes, what, of_denormalizer);
    if (field->number != kPieces) continue;
    const CheckedPiece piece = read_checked_piece(field->bytes, what);
    if (!std::isfinite(piece.score))
      throw Error(what, ": damaged: the score of piece ", count, " is not a number");
    if (piece.text.find('\0') != piece.text.npos) {
      throw Error(what, ": piece ", count, " holds a zero byte, which sentencepiece cannot match");
    }
    if (piece.type == kUserDefined) symbols.push_back(piece.text);
    ++count;
  }
  if (count == 0) throw Error(what, ": has no pieces: expected a sentencepiece model");
  if (longest_chain(std::move(symbols)) > kMaxNestedSymbols) {
    throw Error(what, ": more than ", kMaxNestedSymbols, " user-defined symbols begin with one another");
  }
  return traits;
}

}  // namespace zoo
