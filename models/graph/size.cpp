#include "models/graph/size.h"

#include <algorithm>

namespace zoo::graph {

Size::Size(std::int64_t constant) {
  if (constant != 0) terms_[{}] = constant;
}

Size Size::product(const std::vector<std::size_t>& symbols, std::int64_t coefficient) {
  Size size;
  size.terms_[symbols] = coefficient;
  return size;
}

std::optional<Size> Size::solve(const std::vector<std::vector<std::int64_t>>& corners,
                                std::vector<std::int64_t> values) {
  // One symbol after the other, values at two corners become a constant and a slope.
  for (std::size_t k = 0; k < corners.size(); ++k) {
    const std::int64_t low = corners[k][0], width = corners[k][1] - low;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if ((i >> k & 1) == 0) continue;
      std::int64_t &constant = values[i ^ (std::size_t{1} << k)], &slope = values[i];
      if ((slope - constant) % width != 0) return std::nullopt;
      slope = (slope - constant) / width;
      constant -= slope * low;
    }
  }
  Size size;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::vector<std::size_t> symbols;
    for (std::size_t k = 0; k < corners.size(); ++k)
      if ((i >> k & 1) != 0) symbols.push_back(k);
    if (values[i] != 0) size.terms_[symbols] = values[i];
  }
  return size;
}

bool Size::is_constant() const {
  return terms_.empty() || (terms_.size() == 1 && terms_.begin()->first.empty());
}

std::int64_t Size::value(const std::vector<std::int64_t>& symbols) const {
  std::int64_t sum = 0;
  for (const auto& [factors, coefficient] : terms_) {
    std::int64_t product = coefficient;
    for (const std::size_t k : factors) product *= symbols[k];
    sum += product;
  }
  return sum;
}

Size Size::operator+(const Size& other) const {
  Size result = *this;
  for (const auto& [factors, coefficient] : other.terms_) result.terms_[factors] += coefficient;
  std::erase_if(result.terms_, [](const auto& term) { return term.second == 0; });
  return result;
}

Size Size::operator*(const Size& other) const {
  Size result;
  for (const auto& [factors, coefficient] : terms_) {
    for (const auto& [more, times] : other.terms_) {
      std::vector<std::size_t> all = factors;
      all.insert(all.end(), more.begin(), more.end());
      std::sort(all.begin(), all.end());
      result.terms_[all] += coefficient * times;
    }
  }
  std::erase_if(result.terms_, [](const auto& term) { return term.second == 0; });
  return result;
}

}  // namespace zoo::graph
