#pragma once

/// @file
/// Use:
///
///     // 2 batch length + 3, from its values at batch 2 or 3 and length 5 or 7.
///     const auto size = zoo::graph::Size::solve({{2, 3}, {5, 7}}, {23, 33, 31, 45});
///     size->value({4, 10});  // 83

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace zoo::graph {

/// A polynomial with integer coefficients in the symbols 0, 1, … of a graph (batch, length).
class Size {
 public:
  /// Symbols of a product, in ascending order, to its coefficient; {} is the constant.
  using Terms = std::map<std::vector<std::size_t>, std::int64_t>;

  Size(std::int64_t constant = 0);  // NOLINT: a number is a size
  static Size symbol(std::size_t index) { return product({index}, 1); }
  static Size product(const std::vector<std::size_t>& symbols, std::int64_t coefficient);

  /// The polynomial of degree 1 in each symbol with `values` at all corners: value number i belongs to the
  /// corner where symbol k has corners[k][1] if bit k of i is set, corners[k][0] otherwise. nullopt if its
  /// coefficients are no integers.
  static std::optional<Size> solve(const std::vector<std::vector<std::int64_t>>& corners,
                                   std::vector<std::int64_t> values);

  bool is_constant() const;
  /// Its value where the symbols have these.
  std::int64_t value(const std::vector<std::int64_t>& symbols) const;
  const Terms& terms() const { return terms_; }

  Size operator+(const Size& other) const;
  Size operator*(const Size& other) const;
  auto operator<=>(const Size&) const = default;

 private:
  Terms terms_;  // without zeros
};

}  // namespace zoo::graph
