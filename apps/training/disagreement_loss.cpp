#include "apps/training/disagreement_loss.h"

#include <optional>

#include "data/base/error.h"
#include "models/layers/attention/disagreement.h"

namespace zoo {
namespace {

template <class Do>
void for_each_attention(const Model& model, const Do& act) {
  for (const auto& module : model.modules(/*include_self=*/false)) {
    if (auto* attention = module->as<SelfAttentionImpl>()) act(*attention);
  }
}

// While in scope, the model's attentions record the outputs of their heads: one entry per layer.
class Recording {
 public:
  Recording(const Model& model, std::vector<HeadRecord>& records) : model_(model) {
    for_each_attention(model_, [&](SelfAttentionImpl& attention) { attention.records = &records; });
  }
  ~Recording() {
    for_each_attention(model_, [](SelfAttentionImpl& attention) { attention.records = nullptr; });
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  const Model& model_;
};

}  // namespace

std::vector<std::string> disagreement_names() {
  return {"none", "positions", "subspaces", "outputs"};
}

Disagreement disagreement_named(const std::string& name) {
  const auto names = disagreement_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Disagreement>(i);
  }
  throw Error("--disagreement: expected none, positions, subspaces or outputs, got '", name, "'");
}

DisagreementLoss::DisagreementLoss(std::shared_ptr<Model> model, Disagreement kind, double weight)
    : model_(std::move(model)), kind_(kind), weight_(weight) {
  if (kind_ == Disagreement::kNone) return;
  bool watches = false;
  for_each_attention(*model_, [&](SelfAttentionImpl&) { watches = true; });
  if (!watches) throw Error("--disagreement: the model has no attention whose heads could differ");
  if (model_->config().num_heads < 2)
    throw Error("--disagreement: the model's attentions have one head each");
}

ModelOutput DisagreementLoss::forward(ModelInputs inputs) const {
  if (kind_ == Disagreement::kNone) return model_->forward(inputs);
  inputs.output_attentions = inputs.output_attentions || kind_ == Disagreement::kPositions;
  std::vector<HeadRecord> records;
  std::optional<Recording> recording;
  if (kind_ != Disagreement::kPositions) recording.emplace(*model_, records);
  ModelOutput output = model_->forward(inputs);
  output.loss = output.loss + weight_ * similarity(output, records);
  return output;
}

at::Tensor DisagreementLoss::similarity(const ModelOutput& output,
                                        const std::vector<HeadRecord>& records) const {
  std::vector<at::Tensor> layers;
  if (kind_ == Disagreement::kPositions) {
    for (const auto* weights : {&output.encoder_attentions, &output.attentions}) {
      for (const at::Tensor& each : *weights) layers.push_back(position_similarity(each.to(at::kFloat)));
    }
  } else {
    for (const HeadRecord& each : records) {
      const at::Tensor& heads = kind_ == Disagreement::kSubspaces ? each.values : each.outputs;
      layers.push_back(subspace_similarity(heads.to(at::kFloat)));
    }
  }
  at::Tensor sum = layers.front();
  for (std::size_t i = 1; i < layers.size(); ++i) sum = sum + layers[i];
  return sum / static_cast<double>(layers.size());
}

}  // namespace zoo
