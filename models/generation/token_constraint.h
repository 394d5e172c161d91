#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace zoo {

/// What a row's new tokens must keep to: an automaton over tokens. Its states are numbers; a row begins in
/// begin(). Immutable as seen from outside, though it may remember what it has worked out.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  virtual std::int64_t begin() const = 0;

  /// [V] float32 in CPU memory: 0 for the tokens that may follow, -inf for the others. End tokens may where
  /// what there is may end.
  virtual at::Tensor mask(std::int64_t state) const = 0;

  /// The state behind the token. One that may not follow leads to a state that allows nothing.
  virtual std::int64_t next(std::int64_t state, std::int64_t id) const = 0;
};

}  // namespace zoo
