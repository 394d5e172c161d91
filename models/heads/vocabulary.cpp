#include "models/heads/vocabulary.h"

#include "models/ops/activation.h"
#include "models/ops/linear.h"
#include "models/ops/vocabulary_loss.h"

namespace zoo {

at::Tensor VocabularyHead::logits(const at::Tensor& hidden) const {
  return zoo::softcap(ops::linear(scaled(hidden), weight, bias), softcap);
}

at::Tensor VocabularyHead::loss(const at::Tensor& hidden, const at::Tensor& labels,
                                const LossOptions& options) const {
  at::Tensor rows = hidden.flatten(0, -2), targets = labels.flatten();
  const at::Tensor wanted = targets.ne(-100);
  if (targets.is_cpu() && !wanted.all().item<bool>()) {
    const at::Tensor positions = wanted.nonzero().squeeze(1);
    rows = rows.index_select(0, positions);
    targets = targets.index_select(0, positions);
  }
  if (options.class_weights.defined() || softcap > 0) return cross_entropy(logits(rows), targets, options);
  return ops::vocabulary_loss(scaled(rows), weight, bias, targets, options.label_smoothing);
}

}  // namespace zoo
