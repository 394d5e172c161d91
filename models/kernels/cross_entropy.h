#pragma once

#include <cstddef>
#include <cstdint>

namespace zoo::kernels {

/// A row of logits [classes] and what it should have said.
struct LogitsRow {
  float* logits;
  std::size_t classes;
  std::size_t target;
  float smoothing = 0;  // the part of the target's weight that all classes share
};

/// -log softmax(logits)[target], or its smoothed mean.
double cross_entropy(const LogitsRow& row);

/// The same; the logits become its gradient by them, times `scale`.
double cross_entropy_with_gradient(const LogitsRow& row, float scale);

}  // namespace zoo::kernels
