#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json_file.h"
#include "tokenizer/files/file_readers.h"
#include "tokenizer/sentencepiece/mapped_sentencepiece.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// Languages of M2M-100, whose tokens follow the vocabulary in this order.
constexpr std::string_view kM2m100Languages[] = {
    "af", "am", "ar", "ast", "az", "ba",  "be", "bg", "bn", "br", "bs", "ca", "ceb", "cs", "cy", "da", "de",
    "el", "en", "es", "et",  "fa", "ff",  "fi", "fr", "fy", "ga", "gd", "gl", "gu",  "ha", "he", "hi", "hr",
    "ht", "hu", "hy", "id",  "ig", "ilo", "is", "it", "ja", "jv", "ka", "kk", "km",  "kn", "ko", "lb", "lg",
    "ln", "lo", "lt", "lv",  "mg", "mk",  "ml", "mn", "mr", "ms", "my", "ne", "nl",  "no", "ns", "oc", "or",
    "pa", "pl", "ps", "pt",  "ro", "ru",  "sd", "si", "sk", "sl", "so", "sq", "sr",  "ss", "su", "sv", "sw",
    "ta", "th", "tl", "tn",  "tr", "uk",  "ur", "uz", "vi", "wo", "xh", "yi", "yo",  "zh", "zu"};

// Sets the roles, from files or the class's defaults, and the special tokens: those of roles, and others in
// files.
void set_roles(const fs::path& directory, const TokenizerSettings& settings,
               const std::map<SpecialToken, std::string>& defaults, MappedVocabulary& vocabulary) {
  vocabulary.roles = defaults;
  for (const auto& [role, token] : settings.roles) vocabulary.roles[role] = token.content;
  for (const auto& [role, token] : vocabulary.roles)
    if (vocabulary.ids.contains(token)) vocabulary.special.push_back(token);
  for (const AddedToken& token : settings.additional_special_tokens)
    if (vocabulary.ids.contains(token.content)) vocabulary.special.push_back(token.content);
  for (const auto& [id, token] : settings.added_tokens_decoder) {
    const auto [known, is_new] = vocabulary.ids.emplace(token.content, id);
    if (!token.special || known->second != id)
      throw Error(directory, ": the added token ", nlohmann::json(token.content).dump(), " with the id ", id,
                  is_new ? " is not special" : " is a piece of the vocabulary", ", which ",
                  settings.tokenizer_class,
                  " does not have here: expected special tokens with ids of their own");
    vocabulary.special.push_back(token.content);
  }
}

std::unique_ptr<Tokenizer> mapped(const fs::path& path, const TokenizerSettings& settings,
                                  MappedVocabulary vocabulary, const std::vector<std::string>& names) {
  return mapped_sentencepiece(SentencePieceTokenizer::load(path), std::move(vocabulary),
                              tokenizer_files(settings, path.parent_path(), names),
                              (path.parent_path() / "vocab.json").string());
}

}  // namespace

std::unique_ptr<Tokenizer> read_marian(const fs::path& path, TokenizerSettings settings) {
  MappedVocabulary vocabulary;
  for (const VocabularyEntry& entry : read_vocabulary_object(path.parent_path() / "vocab.json"))
    vocabulary.ids[entry.text] = entry.id;
  set_roles(path.parent_path(), settings,
            {{SpecialToken::unk, "<unk>"}, {SpecialToken::eos, "</s>"}, {SpecialToken::pad, "<pad>"}},
            vocabulary);
  vocabulary.after = {vocabulary.roles.at(SpecialToken::eos)};
  vocabulary.reads_codes = true;
  return mapped(path, settings, std::move(vocabulary), {"source.spm", "target.spm", "vocab.json"});
}

std::unique_ptr<Tokenizer> read_m2m_100(const fs::path& path, TokenizerSettings settings) {
  const fs::path ids = path.parent_path() / "vocab.json",
                 config = path.parent_path() / "tokenizer_config.json";
  if (!fs::exists(ids))
    throw Error(path,
                ": read as mBART's if tokenizer_config.json says MBartTokenizer or MBart50Tokenizer, or as "
                "M2M-100's with a vocab.json beside it; of others tokenizer.json is read");
  const nlohmann::json json = fs::exists(config) ? read_json(config) : nlohmann::json::object();
  if (json.value("language_codes", nlohmann::json("m2m100")) != "m2m100")
    throw Error(config, ": 'language_codes' is ", json.at("language_codes").dump(), ": expected m2m100");
  MappedVocabulary vocabulary;
  for (const VocabularyEntry& entry : read_vocabulary_object(ids)) vocabulary.ids[entry.text] = entry.id;
  const auto count = static_cast<TokenId>(vocabulary.ids.size());
  for (std::size_t i = 0; i < std::size(kM2m100Languages); ++i) {
    const std::string token = "__" + std::string(kM2m100Languages[i]) + "__";
    vocabulary.ids[token] = count + static_cast<TokenId>(i);
  }
  set_roles(path.parent_path(), settings,
            {{SpecialToken::bos, "<s>"},
             {SpecialToken::eos, "</s>"},
             {SpecialToken::sep, "</s>"},
             {SpecialToken::unk, "<unk>"},
             {SpecialToken::pad, "<pad>"}},
            vocabulary);
  const nlohmann::json source = json.value("src_lang", nlohmann::json());
  vocabulary.before = {"__" + (source.is_string() ? source.get<std::string>() : "en") + "__"};
  vocabulary.after = {vocabulary.roles.at(SpecialToken::eos)};
  return mapped(path, settings, std::move(vocabulary), {"sentencepiece.bpe.model", "vocab.json"});
}

}  // namespace zoo
