#include "apps/training/added_losses.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "data/base/field_error.h"
#include "models/layers/attention/attention.h"
#include "models/layers/attention/disagreement.h"

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

bool has_self_attention(const Model& model) {
  const auto modules = model.modules(/*include_self=*/false);
  return std::any_of(modules.begin(), modules.end(),
                     [](const auto& module) { return module->template as<SelfAttentionImpl>() != nullptr; });
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

DisagreementLoss::DisagreementLoss(const Model& model, Disagreement kind, double weight)
    : kind_(kind), weight_(weight) {
  if (!has_self_attention(model))
    throw UnfitField(Field{"disagreement"}, ": the model has no attention whose heads could differ");
  if (model.config().num_heads < 2)
    throw UnfitField(Field{"disagreement"}, ": the model's attentions have one head each");
}

ModelOutput DisagreementLoss::forward(Model& model, ModelInputs inputs) const {
  if (kind_ == Disagreement::kPositions) {
    inputs.output_attentions = true;
  } else {
    inputs.output_heads = true;
  }
  ModelOutput output = model.forward(inputs);
  output.loss = output.loss + weight_ * similarity(output);
  return output;
}

at::Tensor DisagreementLoss::similarity(const ModelOutput& output) const {
  std::vector<at::Tensor> layers;
  if (kind_ == Disagreement::kPositions) {
    for (const auto* weights : {&output.encoder_attentions, &output.attentions})
      for (const at::Tensor& each : *weights) layers.push_back(position_similarity(each.to(at::kFloat)));
  }
  for (const HeadRecord& each : output.heads) {
    const at::Tensor& heads = kind_ == Disagreement::kSubspaces ? each.values : each.outputs;
    layers.push_back(subspace_similarity(heads.to(at::kFloat)));
  }
  at::Tensor sum = layers.front();
  for (std::size_t i = 1; i < layers.size(); ++i) sum = sum + layers[i];
  return sum / static_cast<double>(layers.size());
}

}  // namespace zoo
