#include "models/tasks/translate.h"

#include "data/base/field_error.h"
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
  TokenIds known;
  for (const TokenId id : ids) {
    // A model may have more rows of embeddings than its tokenizer has tokens.
    if (id < model.tokenizer->vocab_size()) known.push_back(id);
  }
  return replace_invalid_utf8(model.tokenizer->decode(known));
}

}  // namespace zoo
