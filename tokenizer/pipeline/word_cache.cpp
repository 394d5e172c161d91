#include "tokenizer/pipeline/word_cache.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace zoo {
namespace {

constexpr std::size_t kFewestSlots = 1 << 10, kMostSlots = 1 << 16;

}  // namespace

WordCache::WordCache() { clear(kFewestSlots); }

void WordCache::insert(std::string_view word, const TokenId* ids, std::size_t count) {
  if (word.empty() || word.size() > kLongest) return;
  if ((size_ + 1) * 2 > slots_.size()) grow();
  Slot slot{Key(word), static_cast<std::uint32_t>(count), 0};
  if (word.size() > Key::kWhole) {
    slot.key.high = texts_.size();
    texts_ += word;
  }
  if (count == 1) {
    slot.id_or_begin = static_cast<std::uint32_t>(ids[0]);
  } else {
    slot.id_or_begin = static_cast<std::uint32_t>(ids_.size());
    ids_.insert(ids_.end(), ids, ids + count);
  }
  put(slot);
  ++size_;
}

void WordCache::clear(std::size_t num_slots) {
  slots_.assign(num_slots, Slot{});
  ids_.clear();
  texts_.clear();
  size_ = 0;
}

void WordCache::grow() {
  if (slots_.size() == kMostSlots) return clear(kMostSlots);
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 4));
  for (const Slot& slot : old)
    if (slot.key.size > 0) put(slot);
}

void WordCache::put(const Slot& slot) {
  std::size_t index = slot_index(slot.key);
  while (slots_[index].key.size > 0) index = (index + 1) & (slots_.size() - 1);
  slots_[index] = slot;
}

std::uint64_t new_cache_key() {
  static std::atomic<std::uint64_t> key{0};
  return ++key;
}

WordCache& thread_cache(std::uint64_t key) {
  struct Owned {
    std::uint64_t key = 0;
    WordCache cache;
  };
  constexpr std::size_t kModels = 4;
  thread_local std::vector<Owned> caches;
  if (!caches.empty() && caches.front().key == key) return caches.front().cache;
  auto found = std::ranges::find_if(caches, [&](const Owned& owned) { return owned.key == key; });
  if (found == caches.end()) {
    if (caches.size() == kModels) caches.pop_back();
    found = caches.insert(caches.end(), Owned{key, {}});
  }
  std::rotate(caches.begin(), found, found + 1);
  return caches.front().cache;
}

}  // namespace zoo
