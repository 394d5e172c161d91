#include "models/tasks/suite/python_random.h"

#include <bit>
#include <cmath>
#include <set>

#include "data/base/sizes.h"

namespace zoo {
namespace {

// The state from a key of one word, where std::mt19937 takes a seed sequence.
struct KeyOfOneWord {
  using result_type = std::uint32_t;
  std::uint32_t key;

  void generate(std::uint32_t* begin, const std::uint32_t* end) const {
    const auto size = static_cast<std::uint32_t>(end - begin);
    const auto mixed = [&](std::uint32_t i) { return begin[i - 1] ^ (begin[i - 1] >> 30); };
    begin[0] = 19650218;
    for (std::uint32_t i = 1; i < size; ++i) begin[i] = 1812433253 * mixed(i) + i;
    std::uint32_t i = 1;
    const auto advance = [&] {
      if (++i < size) return;
      begin[0] = begin[size - 1];
      i = 1;
    };
    for (std::uint32_t k = 0; k < size; ++k, advance()) begin[i] = (begin[i] ^ mixed(i) * 1664525) + key;
    for (std::uint32_t k = 1; k < size; ++k, advance()) begin[i] = (begin[i] ^ mixed(i) * 1566083941) - i;
    begin[0] = 0x80000000;
  }
};

}  // namespace

std::mt19937 python_random(std::uint32_t seed) {
  KeyOfOneWord key{seed};
  return std::mt19937(key);
}

// Of few indices, the drawn ones leave a pool; of many, a repeated one is drawn again.
std::vector<std::size_t> python_sample(std::mt19937& random, std::size_t size, std::size_t count) {
  const auto below = [&](std::size_t bound) {
    std::size_t drawn = bound;
    while (drawn >= bound) drawn = random() >> (32 - std::bit_width(bound));
    return drawn;
  };
  const bool pools = size <= 21 + (count > 5 ? std::pow(4, std::ceil(std::log(count * 3) / std::log(4))) : 0);
  std::vector<std::size_t> found, pool = indices_below(size);
  for (std::set<std::size_t> taken; found.size() < count;) {
    const std::size_t left = pools ? size - found.size() : size, drawn = below(left);
    if (!taken.insert(pool[drawn]).second) continue;
    found.push_back(pool[drawn]);
    if (pools) pool[drawn] = pool[left - 1];
  }
  return found;
}

}  // namespace zoo
