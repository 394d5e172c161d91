#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/layers/attention.h"
#include "models/model.h"

namespace zoo {

/// What the heads of an attention shall not have in common (Li et al., 2018, section 3.2): the positions that
/// they attend to, the values that they attend with, or what they give.
enum class Disagreement { kNone, kPositions, kSubspaces, kOutputs };

/// "none", "positions", "subspaces", "outputs": the names that flags use.
std::vector<std::string> disagreement_names();
Disagreement disagreement_named(const std::string& name);

/// Adds to a model's loss a weight times how alike the heads of a self-attention are, the mean over all
/// layers of position_similarity or subspace_similarity (models/layers/disagreement.h).
class DisagreementLoss {
 public:
  /// Throws Error naming --disagreement for a model whose
  /// attentions have one head or that has none.
  DisagreementLoss(std::shared_ptr<Model> model, Disagreement kind, double weight);

  /// The model's output for the inputs, its loss with the penalty.
  ModelOutput forward(ModelInputs inputs) const;

 private:
  at::Tensor similarity(const ModelOutput& output, const std::vector<HeadRecord>& records) const;

  std::shared_ptr<Model> model_;
  Disagreement kind_;
  double weight_;
};

}  // namespace zoo
