#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/tasks/text_model.h"
#include "models/generation/generation_config.h"

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

/// Throws UsageError for a text that this model does not take; Error for an empty text and one that is longer
/// than the model's positions. Errors name `flag`, that of the text.
TextInputs read_texts(const TextModel& model, const ModelTexts& texts, const GenerationDefaults& defaults,
                      const std::string& flag = "--text");

}  // namespace zoo
