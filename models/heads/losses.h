#pragma once

/// @file
/// Use:
///
///     const at::Tensor loss =
///         zoo::cross_entropy(logits, labels, {.label_smoothing = 0.1});  // -100 is ignored

#include <ATen/core/Tensor.h>

#include "models/layers/transformer_config.h"

namespace zoo {

/// Weights of a cross entropy; other losses ignore them.
struct LossOptions {
  /// Adds the loss that balances experts (layers/experts.h), if config.router_loss, to a language model's.
  bool router = false;
  /// In [0, 1): part of each target's weight that all classes share (Szegedy et al., 2016, section 7).
  double label_smoothing = 0.0;
  at::Tensor class_weights;  // [classes], float32; the mean is taken by them. Undefined: all the same
};

// The losses of Hugging Face's heads, computed in float32: each a mean, [].

/// -log softmax(logits)[label] over logits [*, classes] and integers labels [*]; -100 is ignored.
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels, const LossOptions& options = {});

/// labels [B, T] for a causal model: each position predicts the next token, the last one nothing (-100).
at::Tensor shift_left(const at::Tensor& labels);

/// logits [B, num_labels] of a sequence classifier by config.problem_type: the mean square error to labels
/// [B] or [B, num_labels] (regression), the cross entropy of integers [B] (single label), the binary cross
/// entropy of labels [B, num_labels] in [0, 1] (multi-label). Throws c10::Error for labels of other shapes.
at::Tensor sequence_loss(const at::Tensor& logits, const at::Tensor& labels, const TransformerConfig& config,
                         const LossOptions& options = {});

/// The mean of two cross entropies over the T positions: start_logits and end_logits [B, T], spans [B, 2] of
/// first and last position. Positions are clamped to [0, T], and T, outside the input, is ignored.
at::Tensor span_loss(const at::Tensor& start_logits, const at::Tensor& end_logits, const at::Tensor& spans);

}  // namespace zoo
