#include "data/random/random_stream.h"

#include <numeric>
#include <utility>

namespace zoo {
namespace {

// Separates these counters from those with which samplers draw block positions.
constexpr std::uint32_t kSubkeys = 0x8000'0000;

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, const Position& position) {
  const PhiloxCounter counter = {position.row, position.stream, static_cast<std::uint32_t>(position.step),
                                 static_cast<std::uint32_t>(position.step >> 32) | kSubkeys};
  const PhiloxCounter bits = philox4x32_10(counter, philox_key(seed));
  key_ = {bits[0], bits[1]};
}

std::vector<std::int64_t> RandomStream::permutation(std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[below(i)]);
  return order;
}

}  // namespace zoo
