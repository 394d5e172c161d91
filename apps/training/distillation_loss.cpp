#include "apps/training/distillation_loss.h"

#include <limits>
#include <tuple>

#include <ATen/ATen.h>

#include "apps/training/teacher_file.h"

namespace zoo {
namespace {

at::Tensor log_probs(const at::Tensor& logits, double temperature) {
  return at::log_softmax(logits.to(at::kFloat) / temperature, -1);
}

// [N, K + 1] of log-probabilities [N, V]: those of the ids [N, K], and of all others together.
at::Tensor at_ids(const at::Tensor& log_probs, const at::Tensor& ids) {
  const at::Tensor others = log_probs.scatter(1, ids, -std::numeric_limits<double>::infinity());
  return at::cat({log_probs.gather(1, ids), others.logsumexp(1, /*keepdim=*/true)}, 1);
}

}  // namespace

TopTokens top_tokens(const at::Tensor& logits, double temperature, std::int64_t k) {
  const at::Tensor all = log_probs(logits, temperature), ids = std::get<1>(all.topk(k));
  return {ids, at_ids(all, ids)};
}

// Summed over the rows of logits [N, V].
at::Tensor DistillationLoss::divergence(const at::Tensor& student, const ModelInputs& inputs) {
  at::Tensor q = log_probs(student, options_.temperature), p;
  const auto ask = [&] { return teacher_(inputs).to(student.device()); };
  if (options_.top_k == 0) {
    p = log_probs(ask(), options_.temperature);
  } else {
    const auto top = [&] { return top_tokens(ask(), options_.temperature, options_.top_k); };
    const TopTokens known = file_ ? file_->find(inputs, top) : top();
    p = known.log_probs.to(student.device());
    q = at_ids(q, known.ids.to(student.device()));
  }
  const bool forward = options_.divergence == Divergence::kForwardKl;
  return at::kl_div(forward ? q : p, forward ? p : q, at::Reduction::Sum, /*log_target=*/true);
}

ModelOutput DistillationLoss::forward(Model& student, ModelInputs inputs) {
  if (!inputs.targets.defined()) inputs.targets = shift_left(inputs.labels);
  inputs.labels = at::Tensor();
  inputs.label_positions = inputs.targets.flatten().ne(-100).nonzero().flatten();
  inputs.loss_only = false;
  ModelOutput output = student.forward(inputs);
  const at::Tensor kl = divergence(output.logits, inputs);
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
