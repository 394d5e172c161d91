#pragma once

/// @file
/// Use:
///
///     const zoo::HeadParts head = model.parts().head;
///     const at::Tensor logits = head.logits(head.transformed(states));  // [*, C] to [*, V]

#include <memory>

#include <ATen/core/Tensor.h>

#include "models/heads/losses.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"

namespace zoo {

/// A head as steps on the hidden states [B, T, C]: the tokens that it reads, a projection with an activation
/// and a norm (each may be absent), the projection to logits, and the loss. Model::run() computes them, and
/// engines do in their own way (packed inference, TorchScript).
struct HeadParts {
  /// kFirst: x[:, 0]. kLast: the last token that is not pad_token_id. kLastEnd: the last eos_token_id of the
  /// decoder's ids. kMean: the mean of the tokens that the attention mask keeps. All but kAll give [B, C].
  enum class Tokens { kAll, kFirst, kLast, kLastEnd, kMean };
  /// kClasses: classes of sequences or tokens, an answer's span, or flags. kTokens: ids [B, T] of the
  /// vocabulary. kNextTokens: the same, of which each position predicts the next. kNextSentence: [B].
  enum class Labels { kClasses, kTokens, kNextTokens, kNextSentence };
  Tokens tokens = Tokens::kAll;
  Labels labels = Labels::kClasses;
  std::shared_ptr<LinearImpl> dense;
  Activation activation = Activation::kTanh;  // of `dense`
  std::shared_ptr<NormImpl> norm;
  at::Tensor weight, bias;  // of the projection, [labels or V, C] and [labels or V]; undefined: none
  double scale = 1.0;       // factor of what is projected
  double softcap = 0.0;     // c of logits c tanh(l / c); 0: none
  bool is_span = false;     // logits [B, T, 2] are those of an answer's start and end
  bool is_flag = false;     // logits [B, T, 1] are given as [B, T]
  double dense_dropout = 0.0, dropout = 0.0;  // in training, before `dense` and before the projection

  bool has_vocabulary() const { return labels == Labels::kTokens || labels == Labels::kNextTokens; }
  /// True if every position gets logits of tokens or classes.
  bool is_at_every_position() const {
    return tokens == Tokens::kAll && weight.defined() && !is_span && !is_flag;
  }

  /// norm(activation(dense(x))), as far as the head has them.
  at::Tensor transformed(at::Tensor x, bool training = false) const;
  /// The projection of transformed states [*, C] to [*, labels or V].
  at::Tensor logits(const at::Tensor& x) const;
  /// cross_entropy(logits(x), labels) for labels [*], of which -100 is ignored; without the logits of all
  /// positions at once where possible.
  at::Tensor vocabulary_loss(const at::Tensor& x, const at::Tensor& labels, const LossOptions& options) const;
};

/// [B, T, C] to [B, C]: the mean of the tokens that the mask [B, T] keeps, zeros if it keeps none. Undefined,
/// it keeps all.
at::Tensor mean_of_kept(const at::Tensor& states, const at::Tensor& mask);

}  // namespace zoo
