#include "models/generation/shared_prefixes.h"

#include <algorithm>
#include <numeric>

namespace zoo {
namespace {

// A pass costs about as much as this many more rows in another pass.
constexpr std::size_t kWorthwhile = 16;

class Division {
 public:
  explicit Division(const std::vector<TokenIds>& rows) : rows_(rows), order_(rows.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return rows[a] < rows[b]; });
  }

  // Adds the groups of the sorted rows [first, last); returns the number of tokens saved.
  std::size_t divide(std::size_t first, std::size_t last, std::vector<SharedPrefix>& groups) const {
    if (last - first == 1) {
      groups.push_back({{order_[first]}, 0});
      return 0;
    }
    // The common prefix of the first and the last row is common to all; only the first may end there.
    const TokenIds &least = row(first), &greatest = row(last - 1);
    const auto parting = std::mismatch(least.begin(), least.end(), greatest.begin(), greatest.end()).first;
    const auto alike = static_cast<std::size_t>(parting - least.begin());
    const std::size_t shared = std::min(alike, least.size() - 1);
    const std::size_t together = (last - first - 1) * shared;

    std::vector<SharedPrefix> parts;
    std::size_t apart = 0;
    for (std::size_t begin = first, end = first; begin < last; begin = end) {
      const auto parts_here = [&](std::size_t i) {
        return row(begin).size() == alike || row(i)[alike] != row(begin)[alike];
      };
      for (end = begin + 1; end < last && !parts_here(end);) ++end;
      apart += divide(begin, end, parts);
    }
    if (together >= kWorthwhile && together >= apart) {
      groups.push_back({{order_.begin() + static_cast<std::ptrdiff_t>(first),
                         order_.begin() + static_cast<std::ptrdiff_t>(last)},
                        shared});
      return together;
    }
    groups.insert(groups.end(), parts.begin(), parts.end());
    return apart;
  }

 private:
  const TokenIds& row(std::size_t place) const { return rows_[order_[place]]; }

  const std::vector<TokenIds>& rows_;
  std::vector<std::size_t> order_;
};

}  // namespace

std::vector<SharedPrefix> shared_prefixes(const std::vector<TokenIds>& rows) {
  std::vector<SharedPrefix> groups;
  if (!rows.empty()) Division(rows).divide(0, rows.size(), groups);
  return groups;
}

}  // namespace zoo
