#pragma once

/// @file
/// Use:
///
///     const zoo::ByteAutomaton automaton(zoo::choice({zoo::literal("yes"), zoo::literal("no")}));
///     std::cout << automaton.fits("yes") << automaton.fits("maybe") << "\n";  // 10

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "tokenizer/constraint/pattern.h"

namespace zoo {

/// A pattern as a deterministic automaton over UTF-8 bytes. Every state except kDead can reach the end.
class ByteAutomaton {
 public:
  using State = std::int32_t;
  static constexpr State kDead = -1;

  /// Throws Error if no text fits the pattern or the automaton would be too large.
  explicit ByteAutomaton(const PatternPtr& pattern);

  State begin() const { return 0; }
  State next(State state, unsigned char byte) const {
    return states_[static_cast<std::size_t>(state)].next[byte];
  }
  bool accepts(State state) const { return states_[static_cast<std::size_t>(state)].accepts; }
  bool fits(std::string_view text) const;
  std::size_t size() const { return states_.size(); }

 private:
  struct Row {
    std::array<State, 256> next{};
    bool accepts = false;
  };
  std::vector<Row> states_;
};

/// The steps of each node to the nearest of `ends`, or kUnreachable. forward[n] are the successors of n.
std::vector<std::int64_t> distances_to(std::vector<std::int32_t> ends,
                                       const std::vector<std::vector<std::int32_t>>& forward);
inline constexpr std::int64_t kUnreachable = std::numeric_limits<std::int64_t>::max();

}  // namespace zoo
