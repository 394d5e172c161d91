#pragma once

/// @file
/// Use:
///
///     zoo::TextTranslator model("nllb-200");
///     const auto french = model.translate(
///         {.texts = {"Good day."}, .source_lang = "eng_Latn", .target_lang = "fra_Latn"});
///     std::cout << french[0].text << "\n";

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/generation/decoding_session.h"
#include "models/tasks/compute_options.h"
#include "models/tasks/generation_settings.h"
#include "models/tasks/text_model.h"

namespace zoo {

struct Languages {
  std::optional<TokenId> source, target;
  std::optional<TokenId> code;  // of the target, before the text (Marian)
};

/// An empty name is none. Throws FieldError naming source_lang or target_lang for an unknown one.
Languages languages_of(const Tokenizer& tokenizer, const std::string& source, const std::string& target);

/// Replaces the language that the tokenizer puts beside a text. Throws UnfitField naming `field` without one.
void set_language(Encoding& encoding, const Tokenizer& tokenizer, TokenId language, const char* field);

/// How translations are written where nobody says more: greedily, at most 128 tokens.
GenerationSettings translation_settings();

/// Options of a translation with these settings. Throws FieldError for stop strings, which end none.
GenerationOptions translation_options(GenerationSettings settings, const CheckpointConfig& checkpoint,
                                      const GenerationConfig& config);

/// The ids that the encoder reads. Throws Error for a text without tokens.
TokenIds source_ids(const TextModel& model, const std::string& text, const Languages& languages);

/// The text that the decoder has written.
std::string translated_text(const TextModel& model, const TokenIds& ids);

struct TranslateRequest {
  std::vector<std::string> texts;
  std::string prefix;                    // put before each text, such as T5's "translate English to German: "
  std::string source_lang, target_lang;  // as languages_of() takes them
  std::int64_t batch_size = 16;
};

struct Translation {
  std::string text;
  TokenIds ids;  // that the decoder has written
};

/// An encoder-decoder that translates or summarises texts, as `tzoo translate` does. Threads may share it.
class TextTranslator {
 public:
  /// A directory. Writes as its generation_config.json says, else as translation_settings(). Throws Error
  /// naming a file that is missing or wrong, FieldError for options that the model does not support.
  explicit TextTranslator(const std::filesystem::path& model, const ComputeOptions& compute = {});
  /// Writes as the options of translation_options() say.
  TextTranslator(const CheckpointConfig& checkpoint, GenerationOptions options,
                 const ComputeOptions& compute);

  /// A translation of each text. Throws Error for a text without tokens and FieldError for a language that
  /// the tokenizer lacks and a batch_size below 1.
  std::vector<Translation> translate(const TranslateRequest& request);

 private:
  TextTranslator(const CheckpointConfig& checkpoint, const ComputeOptions& compute);

  GenerationOptions options_;
  TextModel model_;
  std::unique_ptr<DecodingModel> decoder_;
};

}  // namespace zoo
