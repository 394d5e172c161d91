#include "models/tasks/translate.h"

#include <utility>

#include "data/base/field_error.h"
#include "models/generation/generate.h"
#include "models/tasks/inference_loading.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

std::optional<TokenId> find_token(const Tokenizer& tokenizer, const std::string& text) {
  for (TokenId id = 0; id < tokenizer.id_count(); ++id)
    if (tokenizer.token_text(id) == text) return id;
  return std::nullopt;
}

// The token of a language: its name, if that is a special token, since "fr" is also a piece of words; or as
// M2M-100 writes it.
TokenId language_token(const Tokenizer& tokenizer, const char* field, const std::string& language) {
  for (const std::string& text : {language, "__" + language + "__"})
    if (const auto id = find_token(tokenizer, text);
        id && (text != language || tokenizer.decode({{*id}}).empty()))
      return *id;
  throw UnfitField(Field{field}, ": the tokenizer has no token of a language '", language, "'");
}

GenerationOptions options_of(const CheckpointConfig& checkpoint, const ComputeOptions& compute) {
  const GenerationConfig config = read_generation_config(checkpoint.directory, checkpoint.json);
  GenerationSettings settings = translation_settings();
  apply_generation_config(settings, config, [](std::string_view) { return false; });
  settings.options.sampling.seed = static_cast<std::uint64_t>(compute.seed);
  return translation_options(settings, checkpoint, config);
}

}  // namespace

Languages languages_of(const Tokenizer& tokenizer, const std::string& source, const std::string& target) {
  Languages languages;
  if (!source.empty()) languages.source = language_token(tokenizer, "source_lang", source);
  if (target.empty()) return languages;
  languages.code = find_token(tokenizer, ">>" + target + "<<");
  if (!languages.code) languages.target = language_token(tokenizer, "target_lang", target);
  return languages;
}

// It is the one among the special tokens around a text that has no other role.
void set_language(Encoding& encoding, const Tokenizer& tokenizer, TokenId language, const char* field) {
  bool found = false;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    if (encoding.texts[i] >= 0 || tokenizer.has_role(encoding.ids[i])) continue;
    encoding.ids[i] = language;
    found = true;
  }
  if (!found) throw UnfitField(Field{field}, ": this tokenizer puts no language beside a text");
}

GenerationSettings translation_settings() {
  return {.options = {.max_new_tokens = 128, .sampling = {.top_k = 200}}, .temperature = 0};
}

GenerationOptions translation_options(GenerationSettings settings, const CheckpointConfig& checkpoint,
                                      const GenerationConfig& config) {
  if (!settings.stop.empty())
    throw FieldError("generation_config.json: 'stop_strings' is not supported by translate; ",
                     Field{"generation_defaults"}, " ours leaves the file out");
  settings.options.beams.num_return_sequences = 1;
  const GenerationDefaults defaults = defaults_of(config);
  GenerationOptions options = settings.generation_options();
  options.max_new_tokens = settings.new_token_limit(/*longest_prompt=*/1);
  options.eos_token_ids = defaults.eos_token_ids;
  options.decoder_start_token_id = decoder_start(defaults, checkpoint.config);
  return options;
}

TokenIds source_ids(const TextModel& model, const std::string& text, const Languages& languages) {
  Encoding encoding = model.tokenizer->encode(text, {.with_offsets = false});
  if (encoding.ids.empty()) throw Error("there is nothing to translate in an empty text");
  if (languages.source) set_language(encoding, *model.tokenizer, *languages.source, "source_lang");
  TokenIds prompt = encoding.ids;
  if (languages.code) prompt.insert(prompt.begin(), *languages.code);
  return prompt;
}

std::string translated_text(const TextModel& model, const TokenIds& ids) {
  TokenIds known = ids;
  // A model may have more rows of embeddings than its tokenizer has tokens.
  std::erase_if(known, [&](TokenId id) { return id >= model.tokenizer->vocab_size(); });
  return replace_invalid_utf8(model.tokenizer->decode(known));
}

TextTranslator::TextTranslator(const std::filesystem::path& model, const ComputeOptions& compute)
    : TextTranslator(read_writing_checkpoint(model), compute) {}

TextTranslator::TextTranslator(const CheckpointConfig& checkpoint, const ComputeOptions& compute)
    : TextTranslator(checkpoint, options_of(checkpoint, compute), compute) {}

TextTranslator::TextTranslator(const CheckpointConfig& checkpoint, GenerationOptions options,
                               const ComputeOptions& compute)
    : options_(std::move(options)),
      model_(load_text_model(checkpoint, compute, Head::kSeq2SeqLm)),
      decoder_(decoding_model({.model = model_.model, .stored = model_.stored}, compute)) {}

std::vector<Translation> TextTranslator::translate(const TranslateRequest& request) {
  require_in(at_least(1), "batch_size", static_cast<double>(request.batch_size));
  const Languages languages = languages_of(*model_.tokenizer, request.source_lang, request.target_lang);
  GenerationOptions options = options_;
  if (languages.target) options.history.forced_bos_token_id = *languages.target;
  std::vector<Translation> translations;
  std::vector<TokenIds> batch;
  for (std::size_t i = 0; i < request.texts.size(); ++i) {
    batch.push_back(source_ids(model_, request.prefix + request.texts[i], languages));
    if (std::ssize(batch) < request.batch_size && i + 1 < request.texts.size()) continue;
    for (TokenIds& ids : generate(*decoder_, std::exchange(batch, {}), options).ids) {
      std::string text = translated_text(model_, ids);
      translations.push_back({.text = std::move(text), .ids = std::move(ids)});
    }
  }
  return translations;
}

}  // namespace zoo
