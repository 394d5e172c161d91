#pragma once

#include <optional>
#include <string>

#include "models/tasks/look_texts.h"

namespace zoo {

/// Number of a token's or label's logit, and its name: a token as the vocabulary writes it.
struct NamedLogit {
  std::int64_t id = 0;
  std::string name;
};

/// True for a head whose logits are those of labels.
bool gives_labels(const TextModel& model);

/// Where the answer of a model is looked at: `chosen`; else the first mask token in the text of a masked
/// language model; else the last token. Throws FieldError naming `position` for one outside the tokens and
/// one in a text that gets a single answer, and `text` for a masked language model's text without a mask,
/// unless `needs_mask` is false.
std::int64_t answer_position(const TextModel& model, const TextInputs& read,
                             std::optional<std::int64_t> chosen, bool needs_mask = true);

/// The answer with this number.
NamedLogit answer_numbered(const TextModel& model, std::int64_t id);

/// The answer that a field names: a classifier's label; else the one token of the word as it is written or
/// after a space, the more probable by `logits` [V] if both are tokens. Throws FieldError with the
/// word's tokens for a word of several.
NamedLogit answer_named(const TextModel& model, const std::string& field, const std::string& word,
                        const at::Tensor& logits);

}  // namespace zoo
