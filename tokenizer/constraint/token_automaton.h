#pragma once

#include <string>
#include <vector>

#include "tokenizer/constraint/byte_automaton.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// What tokens may follow one another so that together they are a text that fits a pattern.
class TokenAutomaton {
 public:
  using State = ByteAutomaton::State;
  static constexpr State kDead = ByteAutomaton::kDead;

  struct Step {
    TokenId id;
    State next;
  };

  /// `tokens`[id] are the bytes that the token adds to a text; one without bytes is never taken. Throws Error
  /// where no text fits the pattern or these tokens can write none that does.
  TokenAutomaton(const PatternPtr& pattern, std::vector<std::string> tokens);

  State begin() const { return bytes_.begin(); }
  bool accepts(State state) const { return state != kDead && bytes_.accepts(state); }

  /// The tokens that may follow: behind each of them a text that fits can still be written.
  std::vector<Step> steps(State state) const;

  /// How many more tokens it takes to the end of a text that fits, at most: 0 where there is one. Exact, but
  /// for very large automata.
  std::int64_t distance(State state) const { return distances_[static_cast<std::size_t>(state)]; }

  /// kDead if the token may not follow.
  State next(State state, TokenId id) const;

 private:
  template <class Visit>
  void visit_steps(State state, Visit visit) const;
  void measure_by_tokens();
  void measure_by_bytes();

  ByteAutomaton bytes_;
  std::vector<std::string> tokens_;
  // Ids of the tokens that have bytes, in the order of these, and how many bytes each begins with that the
  // one before it begins with too.
  std::vector<TokenId> sorted_;
  std::vector<std::size_t> shared_;
  std::vector<std::int64_t> distances_;  // kUnreachable where no tokens lead to an end
};

/// The bytes that each token adds inside of a text; none for special tokens.
std::vector<std::string> token_bytes(const Tokenizer& tokenizer);

}  // namespace zoo
