#include "apps/training/disagreement_loss.h"

#include "data/base/field_error.h"
#include "models/layers/attention/attention.h"
#include "models/layers/attention/disagreement.h"

namespace zoo {

DisagreementLoss::DisagreementLoss(const Model& model, Disagreement kind, double weight)
    : kind_(kind), weight_(weight) {
  bool attends = false;
  for (const auto& module : model.modules(/*include_self=*/false))
    attends = attends || module->as<SelfAttentionImpl>() != nullptr;
  if (!attends)
    throw UnfitField(Field{"disagreement"}, ": the model has no attention whose heads could differ");
  if (model.config().num_heads < 2)
    throw UnfitField(Field{"disagreement"}, ": the model's attentions have one head each");
}

ModelOutput DisagreementLoss::forward(Model& model, ModelInputs inputs) const {
  (kind_ == Disagreement::kPositions ? inputs.output_attentions : inputs.output_heads) = true;
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
  if (layers.empty()) return at::zeros_like(output.loss);  // LayerDrop has left out all
  at::Tensor sum = layers.front();
  for (std::size_t i = 1; i < layers.size(); ++i) sum = sum + layers[i];
  return sum / static_cast<double>(layers.size());
}

}  // namespace zoo
