#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "tokenizer/token_id.h"

namespace zoo {

/// Constraint on a row's new tokens (structured output): an automaton over tokens with numbered states.
/// Immutable for callers, though it may cache results: one thread at a time uses it.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  /// State of a row without new tokens that may get `tokens` of them. Throws Error if these are too few.
  virtual std::int64_t begin(std::int64_t tokens) const = 0;

  /// [V] float32 in CPU memory: 0 for tokens that may follow, -inf for the others. The text must be complete
  /// after at most `tokens` more, the next one included. End tokens may follow a complete text.
  virtual at::Tensor mask(std::int64_t state, std::int64_t tokens) const = 0;

  /// State after the token. A forbidden token leads to a state that allows nothing.
  virtual std::int64_t next(std::int64_t state, TokenId id) const = 0;

  /// True if only an end token may follow: the row is done without it.
  virtual bool complete(std::int64_t state) const = 0;
};

}  // namespace zoo
