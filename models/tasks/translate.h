#pragma once

/// @file
/// Use:
///
///     const zoo::Languages languages = zoo::languages_of(*model.tokenizer, "eng_Latn", "fra_Latn");
///     if (languages.target) options.history.forced_bos_token_id = *languages.target;
///     const auto result = zoo::generate(*decoder, {zoo::source_ids(model, "Good day.", languages)},
///     options); std::cout << zoo::translated_text(model, result.ids[0]) << "\n";

#include <optional>
#include <string>

#include "models/tasks/generation_settings.h"
#include "models/tasks/text_model.h"

namespace zoo {

/// Tokens of the languages of a translation.
struct Languages {
  std::optional<TokenId> source, target;
  std::optional<TokenId> code;  // of the target, before the text (Marian)
};

/// An empty name is none. Throws FieldError naming source_lang or target_lang for one that the tokenizer
/// lacks.
Languages languages_of(const Tokenizer& tokenizer, const std::string& source, const std::string& target);

/// Replaces the language that the tokenizer puts beside a text. Throws UnfitField naming `field` if it puts
/// none.
void set_language(Encoding& encoding, const Tokenizer& tokenizer, TokenId language, const char* field);

/// How translations are written where nobody says more: greedily, at most 128 tokens.
GenerationSettings translation_settings();

/// Options of a translation with these settings. Throws FieldError for stop strings, which end no
/// translation.
GenerationOptions translation_options(GenerationSettings settings, const CheckpointConfig& checkpoint,
                                      const GenerationConfig& config);

/// The ids that the encoder reads. Throws Error for a text without tokens.
TokenIds source_ids(const TextModel& model, const std::string& text, const Languages& languages);

/// The text that the decoder has written.
std::string translated_text(const TextModel& model, const TokenIds& ids);

}  // namespace zoo
