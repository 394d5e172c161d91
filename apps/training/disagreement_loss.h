#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/layers/attention/attention.h"
#include "models/model.h"

namespace zoo {

/// Where the heads of an attention should differ (Li et al., 2018, section 3.2): the positions they attend
/// to, the values they attend with, or their outputs.
enum class Disagreement { kNone, kPositions, kSubspaces, kOutputs };

/// The flag values "none", "positions", "subspaces", "outputs".
std::vector<std::string> disagreement_names();
Disagreement disagreement_named(const std::string& name);

/// Adds to a model's loss a weight times the similarity of self-attention heads: position_similarity or
/// subspace_similarity (models/layers/attention/disagreement.h), averaged over all layers.
class DisagreementLoss {
 public:
  /// Throws Error naming --disagreement if the model has no attention or attentions with only one head.
  DisagreementLoss(std::shared_ptr<Model> model, Disagreement kind, double weight);

  /// The model's output for the inputs; its loss includes the penalty.
  ModelOutput forward(ModelInputs inputs) const;

 private:
  at::Tensor similarity(const ModelOutput& output, const std::vector<HeadRecord>& records) const;

  std::shared_ptr<Model> model_;
  Disagreement kind_;
  double weight_;
};

}  // namespace zoo
