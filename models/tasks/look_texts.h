#pragma once

/// @file
/// Use:
///
///     const zoo::LookedModel looked = zoo::load_looked_model("gpt2");
///     const auto read = zoo::read_texts(looked.model, {.text = "The capital of"}, looked.defaults);
///     const zoo::analysis::Run run = zoo::analysis::run(*looked.model.model, read.inputs);

#include <optional>
#include <string>
#include <vector>

#include "models/generation/generation_config.h"
#include "models/tasks/text_model.h"

namespace zoo {

/// Input texts of a model that is looked into.
struct ModelTexts {
  std::string text;
  std::optional<std::string> text_pair;  // second text of an encoder
  std::optional<std::string> target;     // decoder text of an encoder-decoder; none: generated
  std::int64_t max_new_tokens = 32;      // maximum length if generated
  TokenIds appended;                     // ids after the text; of an encoder-decoder, after its target
};

/// A model's inputs, one row, and its tokens as the vocabulary writes them.
struct TextInputs {
  ModelInputs inputs;
  std::vector<std::string> source;   // of an encoder or decoder; of an encoder-decoder's encoder
  std::vector<std::string> written;  // of an encoder-decoder's decoder, its start token first
  Encoding encoding;                 // of the source
};

/// A token as the vocabulary writes it; "#ID" for a row of the embeddings that is no token of the tokenizer.
std::string token_name(const TextModel& model, std::int64_t id);

/// Throws UnfitField for a text that this model does not take; FieldError for an empty text and one that is
/// longer than the model's positions. Errors name `field`, that of the text.
TextInputs read_texts(const TextModel& model, const ModelTexts& texts, const GenerationDefaults& defaults,
                      const std::string& field = "text");

/// A checkpoint's model with its tokenizer, as modules, whose parts can be looked at and touched.
struct LookedModel {
  TextModel model;
  GenerationDefaults defaults;
};
LookedModel load_looked_model(const std::filesystem::path& directory, ComputeOptions compute = {});

}  // namespace zoo
