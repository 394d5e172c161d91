#include "apps/training/model_objective.h"

#include <utility>

#include "models/ops/attention.h"

namespace zoo {

ModelObjective::ModelObjective(std::shared_ptr<Model> model, Batches& batches, std::unique_ptr<Metric> metric,
                               LossOptions loss)
    : model_(std::move(model)), batches_(batches), metric_(std::move(metric)), loss_(std::move(loss)) {}

Batch ModelObjective::training(std::int64_t micro_step) {
  ModelBatch batch = batches_.training(micro_step);
  batch.inputs.loss = loss_;
  batch.inputs.loss.router = true;
  batch.inputs.loss_only = true;
  if (loss_.class_weights.defined()) {
    // The loss is a mean weighted by class, so the batch counts by the sum of these weights.
    const at::Tensor labels = batch.inputs.labels.masked_select(batch.inputs.labels.ge(0));
    batch.targets = loss_.class_weights.index_select(0, labels).sum().item<double>();
  }
  return {batch.targets, batch.tokens, [this, inputs = std::move(batch.inputs)] {
            if (distillation_) return distillation_->forward(*model_, inputs).loss;
            return (disagreement_ ? disagreement_->forward(*model_, inputs) : model_->forward(inputs)).loss;
          }};
}

Batch ModelObjective::evaluation(Split split, std::int64_t index) {
  ModelBatch batch = batches_.evaluation(split, index);
  return {batch.targets, batch.tokens, [this, split, inputs = std::move(batch.inputs)] {
            const bool distills = distillation_ && split == Split::kVal;
            const ModelOutput output =
                distills ? distillation_->forward(*model_, inputs) : model_->forward(inputs);
            if (metric_) metric_->add(inputs, output);
            return output.loss;
          }};
}

std::string ModelObjective::first_bad_tensor(std::int64_t micro_step) {
  const at::NoGradGuard no_grad;
  ModelInputs inputs = batches_.training(micro_step).inputs;
  inputs.output_hidden_states = true;
  const ModelOutput output = model_->forward(inputs);
  const auto bad = [](const at::Tensor& x) { return x.defined() && !x.isfinite().all().item<bool>(); };
  for (std::size_t i = 0; i < output.encoder_hidden_states.size(); ++i)
    if (bad(output.encoder_hidden_states[i])) return "encoder_hidden_states." + std::to_string(i);
  for (std::size_t i = 0; i < output.hidden_states.size(); ++i)
    if (bad(output.hidden_states[i])) return "hidden_states." + std::to_string(i);
  if (bad(output.logits)) return "logits";
  return bad(output.loss) ? "loss" : "";
}

std::vector<double> ModelObjective::attention_logit_maxima(std::int64_t micro_step) {
  const at::NoGradGuard no_grad;
  ops::LogitWatch watch;
  ModelInputs inputs = batches_.training(micro_step).inputs;
  inputs.loss_only = true;
  model_->forward(inputs);
  return std::move(watch.maxima);
}

std::optional<std::vector<double*>> ModelObjective::totals() {
  if (distillation_) return std::nullopt;
  return metric_ ? metric_->totals() : std::vector<double*>();
}

std::vector<Score> ModelObjective::take_scores(double loss) {
  std::vector<Score> scores = metric_ ? metric_->take(loss) : std::vector<Score>();
  for (Score& score : take_training_scores()) scores.push_back(std::move(score));
  return scores;
}

}  // namespace zoo
