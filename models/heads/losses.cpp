#include "models/heads/losses.h"

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mse_loss.h>

namespace zoo {
namespace {

ProblemType problem_of(const at::Tensor& labels, const TransformerConfig& config) {
  if (config.problem_type != ProblemType::kByLabels) return config.problem_type;
  if (config.num_labels == 1) return ProblemType::kRegression;
  return at::isIntegralType(labels.scalar_type(), /*includeBool=*/false) ? ProblemType::kSingleLabel
                                                                         : ProblemType::kMultiLabel;
}

void check_shape(const at::Tensor& labels, at::IntArrayRef expected, const char* problem) {
  TORCH_CHECK(labels.sizes() == expected, "labels of a ", problem, " must be ", expected, ", got ",
              labels.sizes());
}

}  // namespace

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels, const LossOptions& options) {
  return at::cross_entropy_loss(logits.flatten(0, -2).to(at::kFloat), labels.flatten(), options.class_weights,
                                at::Reduction::Mean, /*ignore_index=*/-100, options.label_smoothing);
}

at::Tensor shift_left(const at::Tensor& labels) {
  at::Tensor targets = labels.new_full(labels.sizes(), -100);
  targets.slice(1, 0, -1).copy_(labels.slice(1, 1));
  return targets;
}

at::Tensor sequence_loss(const at::Tensor& logits, const at::Tensor& labels, const TransformerConfig& config,
                         const LossOptions& options) {
  const at::Tensor wide = logits.to(at::kFloat);
  switch (problem_of(labels, config)) {
    case ProblemType::kSingleLabel:
      check_shape(labels, {logits.size(0)}, "single-label classification");
      return cross_entropy(logits, labels, options);
    case ProblemType::kMultiLabel:
      check_shape(labels, logits.sizes(), "multi-label classification");
      return at::binary_cross_entropy_with_logits(wide, labels.to(at::kFloat));
    default:
      if (config.num_labels == 1 && labels.dim() == 1) {
        check_shape(labels, {logits.size(0)}, "regression");
        return at::mse_loss(wide.squeeze(1), labels.to(at::kFloat));
      }
      check_shape(labels, logits.sizes(), "regression");
      return at::mse_loss(wide, labels.to(at::kFloat));
  }
}

at::Tensor span_loss(const at::Tensor& start_logits, const at::Tensor& end_logits, const at::Tensor& spans) {
  const std::int64_t batch = start_logits.size(0), outside = start_logits.size(1);
  check_shape(spans, {batch, 2}, "question answering");
  const at::Tensor positions = spans.clamp(0, outside);
  const auto loss = [&](const at::Tensor& logits, std::int64_t column) {
    return at::cross_entropy_loss(logits.to(at::kFloat), positions.select(1, column), {}, at::Reduction::Mean,
                                  outside);
  };
  return (loss(start_logits, 0) + loss(end_logits, 1)) / 2;
}

}  // namespace zoo
