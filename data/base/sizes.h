#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <vector>

namespace zoo {

/// Default upper bound for given counts: sums and products of two such counts fit in 64 bits.
inline constexpr std::int64_t kLargestGivenCount = 2'147'483'647;

/// The product of counts as a size; nothing if it exceeds 2^63 - 1, the largest size of an object.
inline std::optional<std::size_t> checked_product(std::initializer_list<std::size_t> counts) {
  std::size_t product = 1;
  for (const std::size_t count : counts)
    if (__builtin_mul_overflow(product, count, &product) || product > PTRDIFF_MAX) return std::nullopt;
  return product;
}

/// 0, 1, … count - 1.
template <class Index = std::size_t> std::vector<Index> indices_below(std::size_t count) {
  std::vector<Index> indices(count);
  std::iota(indices.begin(), indices.end(), Index{0});
  return indices;
}

}  // namespace zoo
