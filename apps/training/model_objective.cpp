#include "apps/training/model_objective.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/ops/attention.h"

namespace zoo {
namespace {

// The documents of a batch, without padding and labels but those that a decoder reads.
std::vector<ModelInputs> documents_of(const ModelInputs& batch, bool has_targets) {
  const std::int64_t width = batch.input_ids.size(1);
  std::vector<ModelInputs> documents;
  for (std::int64_t begin = 0; const std::int64_t length : batch.document_lengths()) {
    const std::int64_t row = begin / width;
    const auto part = [&](const at::Tensor& x, std::int64_t count) {
      return x.defined() ? x.flatten().slice(0, begin, begin + count).unsqueeze(0) : x;
    };
    const std::int64_t count =
        batch.attention_mask.defined() ? batch.attention_mask[row].sum().item<std::int64_t>() : length;
    const bool is_padding = !batch.documents.empty() && part(batch.targets, length).lt(0).all().item<bool>();
    ModelInputs one{.input_ids = part(batch.input_ids, count),
                    .token_type_ids = part(batch.token_type_ids, count),
                    .output_activations = true};
    if (has_targets) {
      const at::Tensor labels = batch.labels[row];
      one.labels = labels.masked_select(labels.ge(0)).unsqueeze(0);
    }
    if (!is_padding) documents.push_back(std::move(one));
    begin += length;
  }
  return documents;
}

// A head at a time, for memory, and in float32, whose range is larger than float16's.
double largest_logit(const AttentionInputs& in) {
  const std::int64_t heads = in.queries.size(1), group = heads / in.keys.size(1);
  double largest = -HUGE_VAL;
  for (std::int64_t head = 0; head < heads; ++head) {
    AttentionMask mask = in.mask;
    if (mask.bias.defined() && mask.bias.size(1) > 1) mask.bias = mask.bias.narrow(1, head, 1);
    const at::Tensor query = in.queries.narrow(1, head, 1).to(at::kFloat),
                     key = in.keys.narrow(1, head / group, 1).to(at::kFloat);
    largest = std::max(largest, ops::attention_logits(query, key, mask, in.options).max().item<double>());
  }
  return largest;
}

}  // namespace

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
  std::vector<double> maxima;
  const ModelParts parts = model_->parts();
  if (!parts.embeddings) return maxima;
  const bool has_targets = parts.encoder && parts.decoder && parts.head.has_vocabulary();
  // Each document by itself: padding has logits, too.
  for (const ModelInputs& inputs : documents_of(batches_.training(micro_step).inputs, has_targets)) {
    const ModelOutput output = model_->forward(inputs);
    std::vector<double> found;
    for (const auto* layers : {&output.encoder_activations, &output.activations}) {
      for (const LayerActivations& layer : *layers) {
        for (const AttentionInputs* in : {&layer.attention_inputs, &layer.cross_attention_inputs}) {
          if (in->queries.defined()) found.push_back(largest_logit(*in));
        }
      }
    }
    maxima.resize(found.size(), -HUGE_VAL);
    std::ranges::transform(maxima, found, maxima.begin(), [](double a, double b) { return std::max(a, b); });
  }
  return maxima;
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
