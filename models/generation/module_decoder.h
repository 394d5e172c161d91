#pragma once

/// @file
/// Use:
///
///     zoo::ModuleDecoder decoder(model);
///     const zoo::GenerationResult result = zoo::generate(decoder, {ids}, {.max_new_tokens = 20});

#include "models/generation/decoding_session.h"
#include "models/model.h"

namespace zoo {

/// A DecodingModel for a decoder or encoder-decoder of modules. Keeps the model in evaluation mode while it
/// lives and then restores its mode. Logits are on the model's device.
///
/// One KeyValueCache holds the keys and values of all rows. Each row is contiguous, and all end at the same
/// index: a mask hides the padding before a shorter row, and positions count the row's own tokens.
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
