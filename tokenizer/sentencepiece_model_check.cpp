#include "tokenizer/sentencepiece_model_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "data/base/error.h"

namespace zoo {
namespace {

// The library's buffers for the matches at one place: rules of the normalization, and user-defined symbols.
constexpr int kMaxNestedRules = 32;
constexpr std::size_t kMaxNestedSymbols = 64;

static_assert(std::endian::native == std::endian::little, "the table in the file is little-endian");

struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // of a number
  std::string_view bytes;   // of a string or message
};

// The fields of one protobuf message (protobuf.dev/programming-guides/encoding).
class Message {
 public:
  Message(std::string_view bytes, const std::string& what) : rest_(bytes), what_(what) {}

  std::optional<Field> next() {
    if (rest_.empty()) return std::nullopt;
    const std::uint64_t tag = varint();
    Field field;
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

// A double-array trie as darts-clone writes it. A unit has its label in bits 0-7, "a value hangs here" in bit
// 8 and the way to its children in bits 10-31; a value is marked by bit 31.
class Trie {
 public:
  explicit Trie(std::string_view bytes) : units_(bytes.size() / sizeof(std::uint32_t)) {
    if (!units_.empty()) std::memcpy(units_.data(), bytes.data(), units_.size() * sizeof(std::uint32_t));
  }

  bool is_sound(std::size_t num_values) const {
    if (units_.empty() || units_.size() % 256 != 0) return false;
    for (std::size_t at = 0; at < units_.size(); ++at) {
      if (is_value(at)) continue;
      const std::size_t children = first_child(at);
      if ((children | 0xFF) >= units_.size()) return false;
      if (at != 0 && has_value(at) && (units_[children] & 0x7FFFFFFF) >= num_values) return false;
    }
    return deepest_nesting() <= kMaxNestedRules;
  }

 private:
  bool is_value(std::size_t at) const { return units_[at] >> 31 != 0; }
  bool has_value(std::size_t at) const { return (units_[at] >> 8 & 1) != 0; }
  std::size_t first_child(std::size_t at) const {
    const std::uint32_t unit = units_[at];
    return at ^ (unit >> 10 << (unit >> 6 & 8));
  }

  // The most values on a way from the root, found depth first; a way that comes back to itself counts as too
  // many.
  int deepest_nesting() const {
    constexpr int kUnseen = -1, kOpen = -2;
    struct Visit {
      std::size_t at = 0;
      unsigned label = 0;
      int below = 0;
    };
    std::vector<int> nesting(units_.size(), kUnseen);
    std::vector<Visit> way(1);
    nesting[0] = kOpen;
    while (true) {
      Visit& here = way.back();
      if (here.label == 256) {
        const Visit done = here;
        nesting[done.at] = done.below + (has_value(done.at) ? 1 : 0);
        way.pop_back();
        if (way.empty()) return done.below;
        way.back().below = std::max(way.back().below, nesting[done.at]);
        continue;
      }
      const unsigned label = here.label++;
      const std::size_t child = first_child(here.at) ^ label;
      if (is_value(child) || (units_[child] & 0xFF) != label) continue;
      if (nesting[child] == kOpen) return kMaxNestedRules + 1;
      if (nesting[child] == kUnseen) {
        nesting[child] = kOpen;
        way.push_back({child});
      } else {
        here.below = std::max(here.below, nesting[child]);
      }
    }
  }

  std::vector<std::uint32_t> units_;
};

// uint32 size of the trie, the trie, and the replacements that its values point to, each closed by a zero
// byte.
bool is_sound_charsmap(std::string_view map) {
  if (map.empty()) return true;
  std::uint32_t trie_size = 0;
  if (map.size() < sizeof trie_size) return false;
  std::memcpy(&trie_size, map.data(), sizeof trie_size);
  map.remove_prefix(sizeof trie_size);
  if (trie_size >= map.size() || trie_size % sizeof(std::uint32_t) != 0 || map.back() != '\0') return false;
  return Trie(map.substr(0, trie_size)).is_sound(map.size() - trie_size);
}

void read_normalizer(std::string_view spec, const std::string& what, SentencePieceTraits& traits) {
  constexpr std::uint64_t kName = 1, kPrecompiledCharsmap = 2, kRemoveExtraWhitespaces = 4;
  Message message(spec, what);
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
  Message message(spec, what);
  while (const auto field = message.next()) {
    if (field->number == kModelType) traits.is_unigram = field->value == kUnigram;
    if (field->number == kByteFallback) traits.has_byte_fallback = field->value != 0;
  }
}

struct Piece {
  std::string_view text;
  float score = 0;
  std::uint64_t type = 1;
};

Piece read_piece(std::string_view bytes, const std::string& what) {
  Piece piece;
  Message message(bytes, what);
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
  Message message(model, what);
  while (const auto field = message.next()) {
    if (field->number == kTrainer) read_trainer(field->bytes, what, traits);
    if (field->number == kNormalizer) read_normalizer(field->bytes, what, traits);
    if (field->number == kDenormalizer) read_normalizer(field->bytes, what, of_denormalizer);
    if (field->number != kPieces) continue;
    const Piece piece = read_piece(field->bytes, what);
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
