#include "apps/training/distillation_loss.h"

#include <utility>

#include <ATen/ATen.h>

namespace zoo {
namespace {

// The same inputs with the targets of a causal model at the positions that predict them, and their places.
ModelInputs with_target_positions(ModelInputs inputs) {
  if (inputs.label_positions.defined()) return inputs;
  if (!inputs.targets.defined()) inputs.targets = shift_left(inputs.labels);
  inputs.labels = at::Tensor();
  inputs.label_positions = inputs.targets.flatten().ne(-100).nonzero().flatten();
  return inputs;
}

}  // namespace

const std::vector<std::string>& divergence_names() {
  static const std::vector<std::string> names{"forward_kl", "reverse_kl"};
  return names;
}

at::Tensor divergence(const DistillationOptions& options, const at::Tensor& student,
                      const at::Tensor& teacher) {
  const auto log_probs = [&](const at::Tensor& logits) {
    return at::log_softmax(logits.to(at::kFloat) / options.temperature, -1);
  };
  const at::Tensor q = log_probs(student), p = log_probs(teacher.detach());
  const bool forward = options.divergence == Divergence::kForwardKl;
  return at::kl_div(forward ? q : p, forward ? p : q, at::Reduction::Sum, /*log_target=*/true) / q.size(0);
}

DistillationLoss::DistillationLoss(const DistillationOptions& options, Teacher teacher)
    : options_(options), teacher_(std::move(teacher)) {}

ModelOutput DistillationLoss::forward(Model& student, const ModelInputs& given) {
  ModelInputs inputs = with_target_positions(given);
  inputs.loss_only = false;
  ModelOutput output = student.forward(inputs);
  at::Tensor known;
  {
    const at::NoGradGuard no_grad;
    known = teacher_(inputs).to(output.logits.device());
  }
  const at::Tensor kl = divergence(options_, output.logits, known);
  if (student.is_training()) {
    const double scale = options_.weight * options_.temperature * options_.temperature;
    output.loss = (1 - options_.weight) * output.loss + scale * kl;
  }
  const std::int64_t count = output.logits.size(0);
  if (count == 0) return output;  // their mean is NaN
  const at::Tensor sum = kl.detach().to(at::kDouble) * count;
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
