#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json.h"
#include "tokenizer/files/file_readers.h"
#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// Vocabulary and special tokens of a MappedSentencePiece.
struct MappedVocabulary {
  std::unordered_map<std::string, TokenId> ids;  // of pieces and special tokens
  std::vector<std::string> special;              // split the text before the model runs; skipped by decode
  std::map<SpecialToken, std::string> roles;     // unk is one, and eos, which ends each text
  std::string language;                          // the token before each text; "": none
  // A text may begin with a code between ">>" and "<<", such as a language, which is one token (Marian).
  bool reads_codes = false;
};

// The pieces' text, joined as in the library: without the leading space.
std::string joined_pieces(std::string text) {
  for (std::size_t at = 0; (at = text.find(kSpaceMark, at)) != text.npos; ++at)
    text.replace(at, kSpaceMark.size(), " ");
  return text.starts_with(' ') ? text.substr(1) : text;
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\n\r\f\v");
  if (first == text.npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\n\r\f\v") - first + 1);
}

// A sentencepiece model with the ids of a vocab.json: Marian and M2M-100, as without sacremoses.
class MappedSentencePiece final : public TokenModel {
 public:
  MappedSentencePiece(SentencePieceTokenizer model, MappedVocabulary vocabulary, TokenId unk_id)
      : model_(std::move(model)), vocabulary_(std::move(vocabulary)), unk_id_(unk_id) {}

  void encode(std::string_view text, TokenIds& ids, std::vector<ByteRange>* ranges) const override {
    std::uint32_t begin = 0;
    if (vocabulary_.reads_codes && text.starts_with(">>") && text.find("<<") != text.npos) {
      begin = static_cast<std::uint32_t>(text.find("<<") + 2);
      ids.push_back(id_of(std::string(text.substr(0, begin))));
      if (ranges != nullptr) ranges->push_back({0, begin});
      text.remove_prefix(begin);
    }
    for (const std::string& piece : model_.pieces(text)) ids.push_back(id_of(piece));
    if (ranges == nullptr) return;
    for (const ByteRange range : model_.encode(text, EncodeOptions{}).offsets)
      ranges->push_back({begin + range.begin, begin + range.end});
  }

 private:
  TokenId id_of(const std::string& token) const {
    const auto found = vocabulary_.ids.find(token);
    return found == vocabulary_.ids.end() ? unk_id_ : found->second;
  }

  SentencePieceTokenizer model_;
  MappedVocabulary vocabulary_;
  TokenId unk_id_;
};

// Marian's class adds a space after each special token.
TokenDecoder piece_decoder(const MappedVocabulary& vocabulary) {
  return [special = vocabulary.special, space = vocabulary.reads_codes ? " " : ""](auto& tokens) {
    std::string text, pieces;
    for (const std::string& token : tokens) {
      if (std::ranges::count(special, token) == 0) {
        pieces += token;
      } else {
        text += joined_pieces(std::exchange(pieces, {})) + token + space;
      }
    }
    tokens = {trimmed(text + joined_pieces(pieces))};
  };
}

// Sets the roles, from files or the class's defaults, and the special tokens: theirs and others.
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

// Throws Error naming a token of the template, or the unknown token, that the vocabulary lacks.
Pipeline mapped(const fs::path& path, MappedVocabulary vocabulary) {
  Pipeline pipeline{.kind = "sentencepiece"};
  for (const auto& [text, id] : vocabulary.ids) pipeline.vocabulary.push_back({text, id});
  TokenRegistry registry(pipeline);
  for (const std::string& token : vocabulary.special) registry.add(special_token(token));
  for (const auto& [role, token] : vocabulary.roles)
    if (const auto id = registry.find(token)) pipeline.roles[role] = *id;
  const auto id_of = [&](const std::string& token) {
    const auto id = registry.find(token);
    if (!id) throw Error((path.parent_path() / "vocab.json").string(), ": has no token ", token);
    return *id;
  };
  const TokenId unk_id = id_of(vocabulary.roles.at(SpecialToken::unk));
  TokenIds language;
  if (!vocabulary.language.empty()) language.push_back(id_of(vocabulary.language));
  pipeline.encoding_template =
      template_of("language A eos", "language A B eos",
                  {{"language", language}, {"eos", {id_of(vocabulary.roles.at(SpecialToken::eos))}}});
  pipeline.decoder = piece_decoder(vocabulary);
  pipeline.model = std::make_shared<MappedSentencePiece>(SentencePieceTokenizer::load(path),
                                                         std::move(vocabulary), unk_id);
  return pipeline;
}

}  // namespace

std::unique_ptr<Tokenizer> read_marian(const fs::path& path, TokenizerSettings settings) {
  MappedVocabulary vocabulary;
  for (const VocabularyEntry& entry : read_vocabulary_object(path.parent_path() / "vocab.json"))
    vocabulary.ids[entry.text] = entry.id;
  set_roles(path.parent_path(), settings,
            {{SpecialToken::unk, "<unk>"}, {SpecialToken::eos, "</s>"}, {SpecialToken::pad, "<pad>"}},
            vocabulary);
  vocabulary.reads_codes = true;
  Pipeline pipeline = mapped(path, std::move(vocabulary));
  if (path.filename() == "source.spm")
    pipeline.target = read_marian(path.parent_path() / "target.spm", settings);
  return tokenizer_of(std::move(pipeline), settings, path, {"target.spm", "vocab.json"});
}

TokenIds encode_target(const Tokenizer& tokenizer, std::string_view text) {
  const auto* pipeline = dynamic_cast<const PipelineTokenizer*>(&tokenizer);
  if (pipeline != nullptr && pipeline->target() != nullptr)
    return pipeline->target()->encode(text, {.with_offsets = false}).ids;
  for (const TokenId id : tokenizer.encode("", EncodeOptions{}).ids)
    if (!tokenizer.has_role(id))
      throw Error("the tokenizer puts ", tokenizer.token_text(id), " beside texts, which is the language of ",
                  "sources; name that of the targets: target_lang");
  return tokenizer.encode(text, {.with_offsets = false}).ids;
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
  // The languages' tokens follow the vocabulary.
  auto next = static_cast<TokenId>(vocabulary.ids.size());
  for (const std::string_view language : class_words("m2m-100 languages"))
    vocabulary.ids["__" + std::string(language) + "__"] = next++;
  set_roles(path.parent_path(), settings,
            {{SpecialToken::bos, "<s>"},
             {SpecialToken::eos, "</s>"},
             {SpecialToken::sep, "</s>"},
             {SpecialToken::unk, "<unk>"},
             {SpecialToken::pad, "<pad>"}},
            vocabulary);
  vocabulary.language = "__" + settings.src_lang.value_or("en") + "__";
  return tokenizer_of(mapped(path, std::move(vocabulary)), settings, path, {"vocab.json"});
}

}  // namespace zoo
