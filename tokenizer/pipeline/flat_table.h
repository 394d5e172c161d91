#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tokenizer/token_id.h"

namespace zoo {

/// A hash table from 64-bit keys to small, trivially copyable values. Open addressing over one array: most
/// look-ups touch one cache line. The key ~0 is reserved.
template <class Value> class FlatTable {
 public:
  FlatTable() { rebuild(0); }

  /// The value of a key; Value() if it is new. The reference is valid until the next insertion.
  Value& operator[](std::uint64_t key) {
    Slot* slot = &slots_[place_of(key)];
    if (slot->key == kEmpty) {
      if ((size_ + 1) * 10 > slots_.size() * 7) {
        rebuild(size_ * 2);
        slot = &slots_[place_of(key)];
      }
      slot->key = key;
      ++size_;
    }
    return slot->value;
  }

  const Value* find(std::uint64_t key) const {
    const Slot& slot = slots_[place_of(key)];
    return slot.key == kEmpty ? nullptr : &slot.value;
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

  struct Slot {
    std::uint64_t key = kEmpty;
    Value value{};
  };

  std::size_t place_of(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = (key * 0x9E3779B97F4A7C15u) >> shift_;
    while (slots_[place].key != key && slots_[place].key != kEmpty) place = (place + 1) & mask;
    return place;
  }

  void rebuild(std::size_t expected) {
    std::size_t bits = 4;
    while ((std::size_t{7} << bits) < expected * 10 + 10) ++bits;
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(std::size_t{1} << bits));
    shift_ = static_cast<int>(64 - bits);
    for (const Slot& slot : old) {
      if (slot.key != kEmpty) slots_[place_of(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
  int shift_ = 0;
};

/// Two ids as a key; keys are ordered as pairs are.
inline std::uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
/// Values by text, which a view finds without a copy.
template <class Value> using TextTable = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

/// The ids of single characters.
class CharacterIds {
 public:
  static constexpr TokenId kNone = -1;

  CharacterIds() { low_.fill(kNone); }

  void insert(char32_t character, TokenId id) {
    (character < low_.size() ? low_[character] : high_[character]) = id;
  }
  TokenId find(char32_t character) const {
    if (character < low_.size()) return low_[character];
    const TokenId* found = high_.find(character);
    return found == nullptr ? kNone : *found;
  }

 private:
  std::array<TokenId, 256> low_;
  FlatTable<TokenId> high_;
};

}  // namespace zoo
