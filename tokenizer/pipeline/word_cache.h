#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/token_id.h"

namespace zoo {

/// A cache of the ids of words. It has a bounded size and starts over when it is full. For one thread.
class WordCache {
 public:
  /// In bytes; longer words are not cached.
  static constexpr std::size_t kLongest = 128;

  WordCache();

  /// Appends the ids of a word if it is cached.
  bool append(std::string_view word, TokenIds& ids) const {
    if (word.size() > kLongest) return false;
    const Key key(word);
    std::size_t index = slot_index(key);
    while (!holds(slots_[index], key, word)) {
      if (slots_[index].key.size == 0) return false;
      index = (index + 1) & (slots_.size() - 1);
    }
    const Slot& slot = slots_[index];
    if (slot.count == 1) {
      ids.push_back(static_cast<TokenId>(slot.id_or_begin));
    } else {
      const auto first = ids_.begin() + slot.id_or_begin;
      ids.insert(ids.end(), first, first + slot.count);
    }
    return true;
  }

  /// Adds a word that is not cached.
  void insert(std::string_view word, const TokenId* ids, std::size_t count);

 private:
  /// A word of up to kWhole bytes as two numbers; for a longer word, a hash and, in a slot, its position in
  /// texts_. The empty word, which is never cached, marks an empty slot.
  struct Key {
    static constexpr std::size_t kWhole = 16;

    Key() = default;
    explicit Key(std::string_view word) : size(static_cast<std::uint32_t>(word.size())) {
      if (size > kWhole) {
        low = std::hash<std::string_view>()(word);
      } else if (size >= 8) {  // the loads may overlap: together with the size they are unique
        low = load<std::uint64_t>(word, 0);
        high = load<std::uint64_t>(word, size - 8);
      } else if (size >= 4) {
        low = load<std::uint32_t>(word, 0) | static_cast<std::uint64_t>(load<std::uint32_t>(word, size - 4))
                                                 << 32;
      } else if (size > 0) {
        low = load<std::uint8_t>(word, 0) | load<std::uint8_t>(word, size / 2) << 8 |
              load<std::uint8_t>(word, size - 1) << 16;
      }
    }

    template <class Number> static Number load(std::string_view word, std::size_t at) {
      Number number;
      std::memcpy(&number, word.data() + at, sizeof number);
      return number;
    }

    std::uint64_t low = 0, high = 0;
    std::uint32_t size = 0;
  };

  struct Slot {
    Key key;
    std::uint32_t count = 0;
    std::uint32_t id_or_begin = 0;  // the only id, or the position of the ids in ids_
  };

  std::size_t slot_index(const Key& key) const {
    const std::uint64_t high = key.size > Key::kWhole ? 0 : key.high;
    std::uint64_t mixed = (key.low ^ key.size) * 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ mixed >> 32 ^ high) * 0xD6E8FEB86659FD93u;
    return (mixed ^ mixed >> 32) & (slots_.size() - 1);
  }

  bool holds(const Slot& slot, const Key& key, std::string_view word) const {
    if (slot.key.low != key.low || slot.key.size != key.size) return false;
    return key.size <= Key::kWhole ? slot.key.high == key.high
                                   : std::memcmp(texts_.data() + slot.key.high, word.data(), key.size) == 0;
  }

  void clear(std::size_t num_slots);
  void grow();
  void put(const Slot& slot);

  std::vector<Slot> slots_;  // open addressing; a power of two
  TokenIds ids_;
  std::string texts_;
  std::size_t size_ = 0;
};

/// A key for each model whose words a thread caches.
std::uint64_t new_cache_key();

/// This thread's cache of a model, of which it keeps a few: those that it used last.
WordCache& thread_cache(std::uint64_t key);

}  // namespace zoo
