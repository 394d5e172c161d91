#pragma once

/// @file
/// Use:
///
///     const zoo::TextModel model = zoo::load_text_model(zoo::read_checkpoint_config("bert-reviews"), {});
///     const auto labels = zoo::classify(model, {.texts = {"I did not like it"}});

#include <memory>
#include <optional>
#include <span>

#include "models/checkpoint/checkpoint.h"
#include "models/tasks/compute_options.h"
#include "models/tasks/text_pass.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

struct TextModel {
  CheckpointConfig checkpoint;
  std::shared_ptr<Model> model;
  std::shared_ptr<const StoredWeights> stored;  // see LoadedModel
  Head head = Head::kBase;
  std::unique_ptr<Tokenizer> tokenizer;
  c10::Device device = c10::kCPU;

  /// Maximum tokens of a sequence, including special tokens.
  std::size_t max_length() const;
};

/// Loads the checkpoint's model, with this head or its own, and its tokenizer; packs its stacks as
/// `compute.weights` says, and leaves the matrices of an encoder-decoder that writes for decoding_model() to
/// pack. Throws Error naming the directory if either is missing or they do not match, FieldError for weights
/// that the model does not have.
TextModel load_text_model(const CheckpointConfig& checkpoint, const ComputeOptions& compute,
                          std::optional<Head> head = std::nullopt);

ModelInputs batch_of(const TextModel& model, std::span<const Encoding* const> encodings);

/// Throws FieldError if the tokenizer did not tell where the tokens lie in their text.
void require_offsets(const Encoding& encoding);

}  // namespace zoo
