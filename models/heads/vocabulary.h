#pragma once

#include <ATen/core/Tensor.h>

#include "models/heads/losses.h"

namespace zoo {

/// A language model's output projection: hidden [*, C] to a vocabulary, weight [V, C], bias [V] or undefined.
struct VocabularyHead {
  at::Tensor weight, bias;

  /// [*, V]
  at::Tensor logits(const at::Tensor& hidden) const;

  /// cross_entropy(logits(hidden), labels) without the logits of all positions at once, where the CPU's
  /// kernels can: labels [*], -100 is ignored.
  at::Tensor loss(const at::Tensor& hidden, const at::Tensor& labels, const LossOptions& options) const;
};

}  // namespace zoo
