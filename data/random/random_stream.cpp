#include "data/random/random_stream.h"

#include <utility>

#include "data/base/sizes.h"

namespace zoo {
namespace {

// Separates these counters from those with which samplers draw block positions.
constexpr std::uint32_t kSubkeys = 0x8000'0000;

}  // namespace

PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

PhiloxKey philox_key(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

std::uint64_t uniform_below(std::uint64_t range, PhiloxCounter counter, PhiloxKey key) {
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t surplus =
      (0 - range) % range;  // 2^64 mod range: low parts below this would be drawn too often
  for (;;) {
    const PhiloxCounter bits = philox4x32_10(counter, key);
    const Wide product = Wide{std::uint64_t{bits[1]} << 32 | bits[0]} * range;
    if (static_cast<std::uint64_t>(product) >= surplus) return static_cast<std::uint64_t>(product >> 64);
    counter[3] += 0x10000;
  }
}

RandomStream::RandomStream(std::uint64_t seed, const Position& position) {
  const PhiloxCounter counter = {position.row, position.stream, static_cast<std::uint32_t>(position.step),
                                 static_cast<std::uint32_t>(position.step >> 32) | kSubkeys};
  const PhiloxCounter bits = philox4x32_10(counter, philox_key(seed));
  key_ = {bits[0], bits[1]};
}

std::vector<std::int64_t> RandomStream::permutation(std::int64_t count) {
  std::vector<std::int64_t> order = indices_below<std::int64_t>(static_cast<std::size_t>(count));
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[below(i)]);
  return order;
}

}  // namespace zoo
