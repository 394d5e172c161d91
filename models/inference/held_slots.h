#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/generation/decoding_session.h"
#include "models/inference/packed_cache.h"

namespace zoo::inference {

class PackedAdapter;

struct HeldToken {
  std::uint64_t writing;  // slots with the same number at a position hold the same keys and values there
  TokenId id;
  const PackedAdapter* adapter;  // that it was read with
};

// The slots of a cache, and the tokens that each has read.
struct HeldSlots {
  PackedCache cache;
  std::vector<std::vector<HeldToken>> tokens;
  std::uint64_t writings = 0;

  std::uint64_t last_writing(std::size_t slot) const {
    return tokens[slot].empty() ? 0 : tokens[slot].back().writing;
  }

  // The slots as bytes, the one written last at the end. Left out are those that were read with an adapter,
  // and those of which a window has dropped positions.
  void save(const DecodingSession::Write& write) const;
  // Takes the next slot from the beginning of such bytes: its tokens, and where their keys and values are.
  // The capacity of the cache that wrote them may differ.
  std::vector<TokenId> next(std::span<const std::byte>& bytes, std::span<const std::byte>& values) const;
  // Makes it the content of a slot.
  void fill(std::size_t slot, const std::vector<TokenId>& ids, std::span<const std::byte> values);
};

}  // namespace zoo::inference
