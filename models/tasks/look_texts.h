#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/base/field_error.h"
#include "models/generation/generation_config.h"
#include "models/tasks/text_model.h"

namespace zoo {

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

/// A text without tokens, or with more than are read.
struct TokenCountError : FieldError {
  TokenCountError(const std::string& field, std::size_t tokens, std::int64_t limit);
  std::size_t tokens;
  std::int64_t limit;
};

/// Throws UnfitField for a text that this model does not take; TokenCountError for an empty text and one that
/// is longer than the model's positions. Errors name `field`, that of the text.
TextInputs read_texts(const TextModel& model, const ModelTexts& texts, const GenerationConfig& defaults,
                      const std::string& field = "text");

/// A checkpoint's model with its tokenizer, as modules, whose parts can be looked at and touched.
struct LookedModel {
  TextModel model;
  GenerationConfig defaults;
};
LookedModel load_looked_model(const ModelPath& directory, ComputeOptions compute = {});

/// Number of a token's or label's logit, and its name: a token as the vocabulary writes it.
struct NamedLogit {
  std::int64_t id = 0;
  std::string name;
};

/// True for an encoder-decoder whose decoder reads a target; a classifier's reads the text, shifted (BART).
bool reads_target(const TextModel& model);

/// True for a head whose logits are those of labels.
bool gives_labels(const TextModel& model);

/// Where the answer of a model is looked at: `chosen`; else the first mask token in the text of a masked
/// language model; the first token where the head reads that (BERT's classifiers); else the last token.
/// Throws UnfitField naming `position` for one outside the tokens and one in a text that gets a single
/// answer, and `text` for a masked language model's text without a mask, unless `needs_mask` is false.
std::int64_t answer_position(const TextModel& model, const TextInputs& read,
                             std::optional<std::int64_t> chosen, bool needs_mask = true);

NamedLogit answer_numbered(const TextModel& model, std::int64_t id);

/// The answer that a field names; without one the best by `logits`: a classifier's label; else the one token
/// of the word as it is written or after a space, the more probable by `logits` [V] if both are tokens.
/// Throws UnfitField with the word's tokens for a word of several.
NamedLogit answer_named(const TextModel& model, const std::string& field,
                        const std::optional<std::string>& named, const at::Tensor& logits);

}  // namespace zoo
