#pragma once

#include "models/generation/decoding_session.h"
#include "models/model.h"

namespace zoo {

/// A model of modules, as decoding needs it: a decoder, or an encoder-decoder. The model is in evaluation
/// mode while this lives, and then again as it was. Logits are on the model's device.
///
/// The keys and values of all rows stand in one KeyValueCache, each row's side by side and ending where the
/// others end: what lies before a shorter row is hidden by a mask, and positions count the row's own tokens.
class ModuleDecoder : public DecodingModel {
 public:
  explicit ModuleDecoder(Model& model);
  ~ModuleDecoder() override;
  ModuleDecoder(const ModuleDecoder&) = delete;
  ModuleDecoder& operator=(const ModuleDecoder&) = delete;

  const TransformerConfig& config() const override { return model_.config(); }
  std::unique_ptr<DecodingSession> begin(std::int64_t rows, std::int64_t capacity) override;
  std::unique_ptr<DecodingSession> begin(const std::vector<TokenIds>& sources,
                                         std::int64_t capacity) override;

 private:
  Model& model_;
  bool was_training_;
};

}  // namespace zoo
