#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace zoo {

/// What a row's new tokens must keep to: an automaton over tokens, whose states are numbers. Immutable as
/// seen from outside, though it may remember what it has worked out.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  /// The state of a row without new tokens, which may get `tokens` of them. Throws Error if they are too few.
  virtual std::int64_t begin(std::int64_t tokens) const = 0;

  /// [V] float32 in CPU memory: 0 for the tokens that may follow, -inf for the others. `tokens` more may be
  /// written, the next one included, and what is begun must be at an end then. End tokens may follow where
  /// there is one.
  virtual at::Tensor mask(std::int64_t state, std::int64_t tokens) const = 0;

  /// The state behind the token. One that may not follow leads to a state that allows nothing.
  virtual std::int64_t next(std::int64_t state, std::int64_t id) const = 0;

  /// True if nothing but an end token may follow: the row is done without it.
  virtual bool complete(std::int64_t state) const = 0;
};

}  // namespace zoo
