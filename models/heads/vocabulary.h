#pragma once

/// @file
/// Use:
///
///     const zoo::VocabularyHead head{.weight = weight};  // [V, C]
///     const at::Tensor loss = head.loss(hidden, labels, {});

#include <ATen/core/Tensor.h>

#include "models/heads/losses.h"

namespace zoo {

/// A language model's output projection of hidden [*, C] to a vocabulary: scale hidden W^T + b, or with a
/// softcap c the c tanh(x / c) of it.
struct VocabularyHead {
  at::Tensor weight;  // W [V, C]
  at::Tensor bias;    // b [V], or undefined
  double scale = 1.0;
  double softcap = 0.0;  // 0: none

  /// [*, V]
  at::Tensor logits(const at::Tensor& hidden) const;

  /// cross_entropy(logits(hidden), labels) for labels [*], of which -100 is ignored; without the logits of
  /// all positions at once where possible.
  at::Tensor loss(const at::Tensor& hidden, const at::Tensor& labels, const LossOptions& options) const;

 private:
  at::Tensor scaled(const at::Tensor& hidden) const { return scale == 1.0 ? hidden : hidden * scale; }
};

}  // namespace zoo
