#include "models/inference/held_slots.h"

#include <algorithm>
#include <cstring>

#include "data/base/error.h"

namespace zoo::inference {
namespace {

std::span<const std::byte> taken(std::span<const std::byte>& bytes, std::size_t size) {
  if (size > bytes.size()) throw Error("the file of the KV cache ends within a text");
  const auto first = bytes.first(size);
  bytes = bytes.subspan(size);
  return first;
}

}  // namespace

void HeldSlots::save(const DecodingSession::Write& write) const {
  std::vector<std::size_t> slots;
  for (std::size_t slot = 0; slot < tokens.size(); ++slot) {
    const bool adapted =
        std::ranges::any_of(tokens[slot], [](const auto& each) { return each.adapter != nullptr; });
    if (!tokens[slot].empty() && !adapted && cache.is_whole(slot)) slots.push_back(slot);
  }
  std::ranges::sort(slots, {}, [&](std::size_t slot) { return last_writing(slot); });
  for (const std::size_t slot : slots) {
    const std::uint64_t count = tokens[slot].size();
    write(&count, sizeof count);
    for (const HeldToken& token : tokens[slot]) write(&token.id, sizeof token.id);
    cache.each_part(slot, count, [&](std::byte* data, std::size_t size) { write(data, size); });
  }
}

std::vector<TokenId> HeldSlots::next(std::span<const std::byte>& bytes,
                                     std::span<const std::byte>& values) const {
  std::uint64_t count = 0;
  std::memcpy(&count, taken(bytes, sizeof count).data(), sizeof count);
  if (count > bytes.size()) throw Error("the file of the KV cache ends within a text");
  std::vector<TokenId> ids(count);
  std::memcpy(ids.data(), taken(bytes, count * sizeof(TokenId)).data(), count * sizeof(TokenId));
  values = taken(bytes, cache.bytes_of(count));
  return ids;
}

void HeldSlots::fill(std::size_t slot, const std::vector<TokenId>& ids, std::span<const std::byte> values) {
  tokens[slot].clear();
  for (const TokenId id : ids) tokens[slot].push_back({++writings, id, nullptr});
  cache.each_part(slot, ids.size(), [&](std::byte* data, std::size_t size) {
    std::memcpy(data, taken(values, size).data(), size);
  });
}

}  // namespace zoo::inference
