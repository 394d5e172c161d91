#pragma once

/// @file
/// Use:
///
///     const zoo::DisagreementLoss penalized(*model, zoo::Disagreement::kOutputs, /*weight=*/0.1);
///     penalized.forward(*model, inputs).loss.backward();

#include <string>
#include <vector>

#include "models/model.h"

namespace zoo {

/// Where the heads of an attention should differ (Li et al., 2018, section 3.2): the positions they attend
/// to, the values they attend with, or their outputs.
enum class Disagreement { kNone, kPositions, kSubspaces, kOutputs };

/// In the order of Disagreement.
inline const std::vector<std::string> kDisagreementNames{"none", "positions", "subspaces", "outputs"};

/// Adds to a model's loss a weight times the similarity of self-attention heads: position_similarity or
/// subspace_similarity (models/layers/attention/disagreement.h), averaged over all layers.
class DisagreementLoss {
 public:
  /// Throws Error naming --disagreement if the model has no attention or attentions with only one head.
  DisagreementLoss(const Model& model, Disagreement kind, double weight);

  /// The model's output for the inputs; its loss includes the penalty.
  ModelOutput forward(Model& model, ModelInputs inputs) const;

 private:
  at::Tensor similarity(const ModelOutput& output) const;

  Disagreement kind_;
  double weight_;
};

}  // namespace zoo
