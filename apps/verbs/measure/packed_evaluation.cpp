#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>

#include "apps/verbs/measure/evaluations.h"

namespace zoo {

std::vector<TokenIds> rows_of(const at::Tensor& ids) {
  const at::Tensor rows = ids.contiguous();
  const auto* data = rows.const_data_ptr<std::int64_t>();
  std::vector<TokenIds> lists;
  for (std::int64_t row = 0; row < rows.size(0); ++row)
    lists.emplace_back(data + row * rows.size(1), data + (row + 1) * rows.size(1));
  return lists;
}

namespace {

// Targets stand at the position that predicts them, labels at their own.
at::Tensor loss_of(const at::Tensor& logits, const ModelInputs& inputs) {
  if (inputs.targets.defined()) return at::cross_entropy_loss(logits.flatten(0, 1), inputs.targets.flatten());
  return at::cross_entropy_loss(logits.slice(1, 0, -1).flatten(0, 1), inputs.labels.slice(1, 1).flatten());
}

}  // namespace

SplitEvaluation evaluate_packed(DecodingModel& model, Batches& batches, std::int64_t count, Metric& metric,
                                const at::Tensor& exact, const std::function<void(std::int64_t)>& on_step) {
  const at::NoGradGuard no_grad;
  double sum = 0, targets = 0, largest_error = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const ModelBatch batch = batches.evaluation(Split::kVal, i);
    const at::Tensor& ids = batch.inputs.input_ids;
    const auto session = model.begin(ids.size(0), ids.size(1));
    ModelOutput output;
    output.logits = session->read(rows_of(ids), DecodingSession::Logits::kAll);
    if (i == 0 && exact.defined()) largest_error = (output.logits - exact).abs().max().item<double>();
    output.loss = loss_of(output.logits, batch.inputs);
    metric.add(batch.inputs, output);
    sum += output.loss.item<double>() * batch.targets;
    targets += batch.targets;
    on_step(i + 1);
  }
  SplitEvaluation evaluation{.loss = targets > 0 ? sum / targets : 0};
  evaluation.scores = metric.take(evaluation.loss);
  if (exact.defined()) evaluation.scores.push_back({"largest_logit_error", largest_error});
  return evaluation;
}

}  // namespace zoo
