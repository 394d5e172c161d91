#pragma once

/// @file
/// Use:
///
///     zoo::ModuleDecoder decoder(model);
///     const zoo::GenerationResult result = zoo::generate(decoder, {ids}, {.max_new_tokens = 20});

#include <memory>
#include <utility>
#include <vector>

#include "models/generation/decoding_session.h"
#include "models/model.h"

namespace zoo {

/// A DecodingModel for a decoder or encoder-decoder of modules, in EvaluationMode. Logits are on the model's
/// device.
///
/// One KeyValueCache holds the keys and values of all rows. Each row is contiguous, and all end at the same
/// index: a mask hides the padding before a shorter row, and positions count the row's own tokens.
class ModuleDecoder : public DecodingModel {
 public:
  /// `model` must outlive it. Each pass has the interventions, at all positions.
  explicit ModuleDecoder(Model& model, std::vector<Intervention> interventions = {})
      : model_(model), evaluation_(model), interventions_(std::move(interventions)) {}
  explicit ModuleDecoder(std::shared_ptr<Model> model)
      : held_(std::move(model)), model_(*held_), evaluation_(*held_) {}

  const TransformerConfig& config() const override { return model_.config(); }
  std::unique_ptr<DecodingSession> begin(std::int64_t rows, std::int64_t capacity) override;
  std::unique_ptr<DecodingSession> begin(const std::vector<TokenIds>& sources,
                                         std::int64_t capacity) override;

 private:
  std::shared_ptr<Model> held_;  // null: somebody else holds the model
  Model& model_;
  EvaluationMode evaluation_;
  std::vector<Intervention> interventions_;
};

}  // namespace zoo
