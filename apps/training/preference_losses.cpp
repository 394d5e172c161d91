#include "apps/training/preference_losses.h"

#include <ATen/ATen.h>

namespace zoo {

at::Tensor preference_loss(const PreferenceLossOptions& options, const at::Tensor& chosen,
                           const at::Tensor& rejected, const at::Tensor& kl) {
  const double beta = options.beta, wrong = options.label_smoothing;
  if (options.loss == PreferenceLoss::kKto)
    return (1 - at::cat({at::sigmoid(beta * (chosen - kl)), at::sigmoid(beta * (kl - rejected))})).mean();
  const at::Tensor margin = chosen - rejected;
  if (options.loss == PreferenceLoss::kIpo) return (margin - 1 / (2 * beta)).square().mean();
  if (options.loss == PreferenceLoss::kOrpo) {
    const at::Tensor odds = margin - at::log1p(-chosen.exp()) + at::log1p(-rejected.exp());
    return -beta * at::log_sigmoid(odds).mean();
  }
  // DPO; with label smoothing a share of the pairs is the wrong way round.
  const at::Tensor right = at::log_sigmoid(beta * margin);
  if (wrong == 0) return -right.mean();
  return -((1 - wrong) * right + wrong * at::log_sigmoid(-beta * margin)).mean();
}

}  // namespace zoo
