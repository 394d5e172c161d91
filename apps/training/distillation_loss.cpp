#include "apps/training/distillation_loss.h"

#include <ATen/ATen.h>

namespace zoo {
namespace {

// Summed over the rows of logits [N, V].
at::Tensor divergence(const DistillationOptions& options, const at::Tensor& student,
                      const at::Tensor& teacher) {
  const auto log_probs = [&](const at::Tensor& logits) {
    return at::log_softmax(logits.to(at::kFloat) / options.temperature, -1);
  };
  const at::Tensor q = log_probs(student), p = log_probs(teacher);
  const bool forward = options.divergence == Divergence::kForwardKl;
  return at::kl_div(forward ? q : p, forward ? p : q, at::Reduction::Sum, /*log_target=*/true);
}

}  // namespace

ModelOutput DistillationLoss::forward(Model& student, ModelInputs inputs) {
  if (!inputs.targets.defined()) inputs.targets = shift_left(inputs.labels);
  inputs.labels = at::Tensor();
  inputs.label_positions = inputs.targets.flatten().ne(-100).nonzero().flatten();
  inputs.loss_only = false;
  ModelOutput output = student.forward(inputs);
  const at::Tensor kl = divergence(options_, output.logits, teacher_(inputs).to(output.logits.device()));
  const double scale = options_.weight * options_.temperature * options_.temperature;
  const std::int64_t count = output.logits.size(0);
  if (student.is_training()) output.loss = (1 - options_.weight) * output.loss + scale * kl / count;
  const at::Tensor sum = kl.detach().to(at::kDouble);
  sum_ = targets_ > 0 ? sum_ + sum : sum;
  targets_ += count;
  return output;
}

std::vector<Score> DistillationLoss::take_scores() {
  const auto count = static_cast<double>(std::exchange(targets_, 0));
  if (count == 0) return {};
  return {{"kl", sum_.item<double>() / count}};
}

}  // namespace zoo
