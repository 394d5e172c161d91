#include "tokenizer/files/tokenizer_class.h"

#include <algorithm>

#include "data/base/error.h"
#include "data/base/lines.h"
#include "tokenizer/files/file_readers.h"

namespace zoo::embedded {
extern const std::string_view kTokenizerClasses;  // tokenizer_classes.txt
}

namespace zoo {
namespace {

namespace fs = std::filesystem;

// In classes with language codes, a mask includes the spaces before it, unless a file has its rules.
void set_mask_rules(TokenizerSettings& settings) {
  AddedToken& mask = settings.roles.at(SpecialToken::mask);
  const bool is_listed = std::ranges::any_of(
      settings.added_tokens_decoder, [&](const auto& entry) { return entry.second.content == mask.content; });
  if (!settings.mask_has_rules && !is_listed) mask.lstrip = mask.normalized = true;
}

constexpr std::string_view kBackend = "TokenizersBackend";  // the class that keeps a file's pipeline

bool is_listed(std::string_view section, std::string_view word) {
  return std::ranges::count(class_words(section), word) > 0;
}

}  // namespace

std::vector<std::string_view> class_words(std::string_view section) {
  std::vector<std::string_view> words;
  std::string_view text = text_section(embedded::kTokenizerClasses, section);
  for (std::size_t end; (end = text.find_first_of(" \n")) != text.npos; text.remove_prefix(end + 1))
    words.push_back(text.substr(0, end));
  return words;
}

void TokenizerSettings::use_class(std::string name) {
  tokenizer_class = std::move(name);
  const std::vector<std::string_view> words = class_words("defaults");
  auto word = std::ranges::find(words, tokenizer_class);
  for (std::size_t role = 0; word != words.end() && role < 7; ++role) {
    if (*++word != "-") roles.try_emplace(static_cast<SpecialToken>(role), special_token(std::string(*word)));
  }
}

void TokenizerSettings::add_sentinels() {
  const bool has_some = std::ranges::any_of(additional_special_tokens, [](const AddedToken& token) {
    return token.content.starts_with("<extra_id_");
  });
  if (names_extra_tokens || has_some) return;
  for (std::int64_t i = 0; i < extra_ids.value_or(100); ++i)
    additional_special_tokens.push_back(special_token("<extra_id_" + std::to_string(i) + ">"));
}

void add_class_tokens(TokenizerSettings& settings) {
  const std::string& name = settings.tokenizer_class;
  // The constructor of a class adds its defaults to a vocabulary that lacks them.
  for (const auto& [role, token] : settings.roles) settings.named.push_back(role);
  if (name == "T5Tokenizer") settings.add_sentinels();
  const bool is_nllb = name == "NllbTokenizer";
  if (!is_nllb && !name.starts_with("MBart")) return;
  set_mask_rules(settings);
  if (settings.names_extra_tokens) return;
  std::vector<AddedToken> languages;
  for (const std::string_view code : class_words("nllb languages"))
    if (is_nllb) languages.push_back(special_token(std::string(code) + (code.size() == 3 ? "_Latn" : "")));
  for (const std::string_view language : mbart_languages(name == "MBart50Tokenizer"))
    if (!is_nllb) languages.push_back(special_token(std::string(language)));
  auto& extra = settings.additional_special_tokens;
  extra.insert(name == "MBartTokenizer" ? extra.begin() : extra.end(), languages.begin(), languages.end());
}

void set_class_template(const TokenizerSettings& settings, Pipeline& pipeline, const fs::path& file) {
  const std::string& name = settings.tokenizer_class;
  const auto id_of = [&, registry = TokenRegistry(pipeline)](const std::string& text) {
    const auto id = registry.find(text);
    if (!id) throw Error(file, ": has no token '", text, "', which ", name, " puts beside every text");
    return *id;
  };
  const auto role = [&](SpecialToken role) { return id_of(settings.roles.at(role).content); };
  const auto around_texts = [&](EncodingTemplate (*make)(TokenId, TokenId), SpecialToken first,
                                SpecialToken last) {
    const TokenId begin = role(first);
    return make(begin, role(last));
  };
  const bool is_nllb = name == "NllbTokenizer", is_mbart = name == "MBartTokenizer";
  if (name == "BertTokenizer" || name == "DebertaV2Tokenizer" || name == "AlbertTokenizer") {
    pipeline.encoding_template = around_texts(bert_template, SpecialToken::cls, SpecialToken::sep);
  } else if (name == "RobertaTokenizer" || name == "MPNetTokenizer") {
    pipeline.encoding_template = around_texts(roberta_template, SpecialToken::cls, SpecialToken::sep);
  } else if (name == "XLMRobertaTokenizer") {
    pipeline.encoding_template = around_texts(roberta_template, SpecialToken::bos, SpecialToken::eos);
  } else if (name == "T5Tokenizer") {
    pipeline.encoding_template = template_of("A eos", "A eos B eos", {{"eos", {role(SpecialToken::eos)}}});
  } else if (name == "PegasusTokenizer") {
    pipeline.encoding_template = template_of("A eos", "A B eos", {{"eos", {role(SpecialToken::eos)}}});
  } else if (is_nllb || is_mbart || name == "MBart50Tokenizer") {
    const std::map<std::string, TokenIds> ids{
        {"eos", {role(SpecialToken::eos)}},
        {"language", {id_of(settings.src_lang.value_or(is_nllb ? "eng_Latn" : "en_XX"))}}};
    const bool language_ends = is_mbart || (is_nllb && settings.legacy_behaviour.value_or(false));
    pipeline.encoding_template = language_ends ? template_of("A eos language", "A B eos language", ids)
                                               : template_of("language A eos", "language A B eos", ids);
  } else if (name == "GPTNeoXTokenizer") {
    pipeline.encoding_template = plain_template();
  } else {
    return;  // keeps the file's template and how it trims offsets
  }
  pipeline.offset_trimming.reset();
  if (name == "MPNetTokenizer" || (name == "RobertaTokenizer" && settings.trim_offsets.value_or(true)))
    pipeline.offset_trimming =
        Pipeline::OffsetTrimming{name == "RobertaTokenizer" && settings.add_prefix_space.value_or(false)};
}

Pipeline unigram_pipeline(const TokenizerSettings& settings, const fs::path& file, std::string_view charsmap,
                          const std::vector<UnigramPiece>& pieces, TokenId unk_id) {
  Pipeline pipeline;
  set_class_parts(settings, file, pipeline, charsmap);
  for (const UnigramPiece& piece : pieces)
    pipeline.vocabulary.push_back({piece.text, static_cast<TokenId>(pipeline.vocabulary.size())});
  pipeline.model = std::make_shared<UnigramModel>(pieces, UnigramOptions{.unk_id = unk_id});
  apply_settings(settings, pipeline);
  set_class_template(settings, pipeline, file);
  pipeline.kind = "sentencepiece";
  return pipeline;
}

std::string canonical_class(std::string name) {
  if (name.ends_with("Fast")) name.erase(name.size() - 4);
  for (const char* as : {"BertTokenizer", "RobertaTokenizer", "TokenizersBackend"})
    if (is_listed(std::string("as ") + as, name)) return as;
  return name;
}

std::string chosen_class(std::string_view model_type, const std::string& named, bool is_byte_level) {
  const std::vector<std::string_view> classes = class_words("registered");
  const auto found =
      std::ranges::find_if(classes, [&](std::string_view name) { return is_listed(name, model_type); });
  const std::string registered(found == classes.end() ? "" : *found);
  const bool is_named = !named.empty() && registered != kBackend && !is_listed("distrusted", model_type) &&
                        !(named == "LlamaTokenizer" && is_byte_level);
  const bool is_registered = named.empty() || is_listed("distrusted", model_type);
  const std::string chosen = is_named ? named : is_registered ? registered : "";
  return chosen == kBackend ? "" : chosen;
}

}  // namespace zoo
