#pragma once

/// @file
/// Use:
///
///     const zoo::TokenAutomaton automaton(pattern, zoo::token_bytes(tokenizer));
///     for (const auto& step : automaton.steps(automaton.begin()))
///       std::cout << step.id << "\n";  // allowed first

#include <string>
#include <vector>

#include "tokenizer/constraint/byte_automaton.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// The token sequences whose text fits a pattern (Willard and Louf, 2023): a token is allowed if its bytes
/// lead to a state of the byte automaton from which tokens reach the end.
class TokenAutomaton {
 public:
  using State = ByteAutomaton::State;
  static constexpr State kDead = ByteAutomaton::kDead;

  struct Step {
    TokenId id;
    State next;
  };

  /// `tokens`[id] are the bytes that a token adds to a text; a token without bytes is never allowed. Throws
  /// Error if no text fits the pattern or these tokens cannot form one.
  TokenAutomaton(const PatternPtr& pattern, std::vector<std::string> tokens);

  State begin() const { return bytes_.begin(); }
  bool accepts(State state) const { return state != kDead && bytes_.accepts(state); }

  /// The tokens allowed in this state: the text can still be completed after each of them.
  std::vector<Step> steps(State state) const;

  /// At most so many tokens to the end of a fitting text, 0 at one; exact unless the automaton is very large.
  std::int64_t distance(State state) const { return distances_[static_cast<std::size_t>(state)]; }

  /// kDead if the token is not allowed.
  State next(State state, TokenId id) const { return next(state, bytes_of(id)); }
  State next(State state, std::string_view bytes) const;
  const std::string& bytes_of(TokenId id) const { return tokens_[static_cast<std::size_t>(id)]; }
  std::size_t token_count() const { return tokens_.size(); }

 private:
  template <class Visit> void visit_steps(State state, Visit visit) const;
  std::vector<std::vector<State>> successors_by_tokens() const;
  std::vector<std::vector<State>> successors_by_bytes() const;

  ByteAutomaton bytes_;
  std::vector<std::string> tokens_;
  // A token with bytes: the number shared with the previous token in byte order, and the number of the rest.
  struct SortedToken {
    TokenId id;
    std::size_t shared, rest;
  };
  std::vector<SortedToken> sorted_;
  std::string rests_;  // the remaining bytes of all tokens, in order
  std::size_t longest_ = 0;
  std::vector<std::int64_t> distances_;  // kUnreachable if no tokens lead to an end
};

/// The bytes that each token adds inside a text; none for special tokens.
std::vector<std::string> token_bytes(const Tokenizer& tokenizer);

}  // namespace zoo
