#pragma once

#include <cstddef>
#include <cstdint>

namespace zoo::kernels {

/// A row of logits [classes] and its target.
struct LogitsRow {
  float* logits;
  std::size_t classes;
  std::size_t target;
  float smoothing = 0;  // part of the target's weight that all classes share
};

/// -log softmax(logits)[target], or its label-smoothed mean.
double cross_entropy(const LogitsRow& row);

/// The same; overwrites the logits with their gradient times `scale`.
double cross_entropy_with_gradient(const LogitsRow& row, float scale);

}  // namespace zoo::kernels
