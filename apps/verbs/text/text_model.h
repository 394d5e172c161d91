#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "apps/command/compute_options.h"
#include "apps/verbs/packed_weights.h"
#include "models/checkpoint/checkpoint.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// A checkpoint that reads texts.
struct TextModel {
  std::shared_ptr<Model> model;
  Head head = Head::kBase;
  std::unique_ptr<Tokenizer> tokenizer;
  c10::Device device = c10::kCPU;

  /// The most tokens of a sequence, special tokens included.
  std::size_t max_length() const;
};

/// The directory's model with this head, or its own, and its tokenizer; an encoder is packed as `weights`
/// says. Throws Error naming the directory if either is missing or they do not belong together.
TextModel load_text_model(const std::filesystem::path& directory, const ComputeOptions& compute,
                          const PackedWeights& weights = {.weights = "modules"},
                          std::optional<Head> head = std::nullopt);

/// The encodings as one batch, padded behind; no mask if all are of one length.
ModelInputs batch_of(const TextModel& model, std::span<const Encoding* const> encodings);

/// The order that puts texts of like length beside each other, so that little is padded: longest first.
std::vector<std::size_t> by_length(std::span<const Encoding> encodings);

}  // namespace zoo
