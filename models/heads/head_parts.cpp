#include "models/heads/head_parts.h"

#include "models/ops/activation.h"
#include "models/ops/linear.h"

namespace zoo {
namespace {

at::Tensor scaled(const at::Tensor& x, double scale) { return scale == 1.0 ? x : x * scale; }

}  // namespace

at::Tensor HeadParts::transformed(at::Tensor x, bool training) const {
  if (dense) x = activate(dense->forward(ops::dropout(x, training ? dense_dropout : 0.0)), activation);
  if (norm) x = norm->forward(x);
  return ops::dropout(x, training ? dropout : 0.0);
}

at::Tensor HeadParts::logits(const at::Tensor& x) const {
  return zoo::softcap(ops::linear(scaled(x, scale), weight, bias), softcap);
}

at::Tensor HeadParts::vocabulary_loss(const at::Tensor& x, const at::Tensor& labels,
                                      const LossOptions& options) const {
  at::Tensor rows = x.flatten(0, -2), targets = labels.flatten();
  const at::Tensor wanted = targets.ne(-100);
  if (targets.is_cpu() && !wanted.all().item<bool>()) {
    const at::Tensor positions = wanted.nonzero().squeeze(1);
    rows = rows.index_select(0, positions);
    targets = targets.index_select(0, positions);
  }
  if (options.class_weights.defined() || softcap > 0) return cross_entropy(logits(rows), targets, options);
  return ops::vocabulary_loss(scaled(rows, scale), weight, bias, targets, options.label_smoothing);
}

at::Tensor mean_of_kept(const at::Tensor& states, const at::Tensor& mask) {
  if (!mask.defined()) return states.mean(1);
  const at::Tensor kept = mask.to(states.device()).ne(0).unsqueeze(-1);
  return states.masked_fill(kept.logical_not(), 0.0).sum(1) / kept.sum(1).clamp_min(1);
}

}  // namespace zoo
