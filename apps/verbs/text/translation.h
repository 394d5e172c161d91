#pragma once

#include <optional>
#include <string>

#include "apps/verbs/text/text_model.h"

namespace zoo {

/// Tokens of the languages of a translation.
struct Languages {
  std::optional<TokenId> source, target;
  std::optional<TokenId> code;  // of the target, before the text (Marian)
};

/// An empty name is none. Throws Error naming the flag of a language that the tokenizer lacks.
Languages languages_of(const Tokenizer& tokenizer, const std::string& source, const std::string& target);

/// The ids that the encoder reads. Throws Error for a text without tokens.
TokenIds source_ids(const TextModel& model, const std::string& text, const Languages& languages);

/// The text that the decoder has written.
std::string translated_text(const TextModel& model, const TokenIds& ids);

}  // namespace zoo
