#include "models/analysis/logit_target.h"

#include <ATen/ops/softmax.h>

namespace zoo::analysis {
namespace {

void check_token(std::int64_t token, const at::Tensor& logits) {
  TORCH_CHECK(token >= 0 && token < logits.size(0), "token ", token, " is not in [0, ", logits.size(0), ")");
}

void check_distribution(const Model& model, const at::Tensor& logits) {
  const HeadParts head = model.parts().head;
  const ProblemType problem = model.config().problem_type;
  const bool of_sequence = logits.dim() == 2 && !head.is_flag;
  TORCH_CHECK(!head.is_flag && !head.is_span,
              "the model's head gives no logits of tokens or labels to measure, but a flag or span for each "
              "position");
  TORCH_CHECK(
      !of_sequence ||
          (logits.size(1) > 1 && problem != ProblemType::kRegression && problem != ProblemType::kMultiLabel),
      "a classifier of one of several labels has a distribution; this one is for regression or for several "
      "labels at once");
}

}  // namespace

at::Tensor target_logits(const Model& model, const ModelOutput& output, const LogitTarget& target) {
  at::Tensor logits = output.logits;
  TORCH_CHECK(logits.defined() && logits.dim() >= 2,
              "the model's head gives no logits of tokens or labels to measure");
  check_distribution(model, logits);
  if (logits.dim() == 3) {
    const std::int64_t length = logits.size(1);
    TORCH_CHECK(target.position >= -1 && target.position < length, "position ", target.position,
                " is not in a sequence of ", length);
    logits = logits.select(1, target.position);
  }
  logits = logits[0].to(at::kFloat);
  check_token(target.token, logits);
  if (target.other) check_token(*target.other, logits);
  return logits;
}

double measure(const Model& model, const ModelOutput& output, const LogitTarget& target) {
  const at::Tensor logits = target_logits(model, output, target);
  if (target.other) return (logits[target.token] - logits[*target.other]).item<double>();
  return at::softmax(logits, -1)[target.token].item<double>();
}

}  // namespace zoo::analysis
