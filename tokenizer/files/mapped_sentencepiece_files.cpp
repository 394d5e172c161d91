#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
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
  std::map<SpecialToken, std::string> roles;     // unk must be one
  std::vector<std::string> before, after;        // special tokens around each text
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
class MappedSentencePiece final : public Tokenizer {
 public:
  // `files` are the names and contents that save() writes. Throws Error naming `what` and a token of the
  // template, or the unknown token, that the vocabulary lacks.
  MappedSentencePiece(SentencePieceTokenizer model, MappedVocabulary vocabulary,
                      std::map<std::string, std::string> files, const std::string& what)
      : model_(std::move(model)), vocabulary_(std::move(vocabulary)), files_(std::move(files)) {
    const auto require = [&](const std::string& token) {
      const auto found = vocabulary_.ids.find(token);
      if (found == vocabulary_.ids.end()) throw Error(what, ": has no token ", token);
      return found->second;
    };
    unk_id_ = require(vocabulary_.roles.at(SpecialToken::unk));
    TokenId last = 0;
    for (const auto& [text, id] : vocabulary_.ids) last = std::max(last, id);
    texts_.resize(static_cast<std::size_t>(last) + 1);
    is_special_.resize(texts_.size());
    for (const auto& [text, id] : vocabulary_.ids) texts_[static_cast<std::size_t>(id)] = text;
    std::vector<VocabularyEntry> special;
    for (const std::string& token : vocabulary_.special) {
      special.push_back({token, require(token)});
      is_special_[static_cast<std::size_t>(special.back().id)] = true;
    }
    special_ = trie_of(special);
    TokenIds before, after;
    for (const std::string& token : vocabulary_.before) before.push_back(require(token));
    for (const std::string& token : vocabulary_.after) after.push_back(require(token));
    template_ = template_of("before A after", "before A B after", {{"before", before}, {"after", after}});
  }

  std::shared_ptr<const Tokenizer> target;  // of texts in the language that Marian writes
  std::string_view kind() const override { return "sentencepiece"; }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(texts_.size()); }
  Encoding tokenize(std::string_view text, const EncodeOptions&, bool) const override {
    require_utf8(text, "the text");
    TokenIds ids;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      const ByteTrie::Match special = special_.longest(ByteTrie::kRoot, text.substr(at));
      if (special.size == 0) {
        ++at;
        continue;
      }
      if (at > begin) encode_part(text.substr(begin, at - begin), ids);
      ids.push_back(special.id);
      begin = at += special.size;
    }
    if (begin < text.size()) encode_part(text.substr(begin), ids);
    return {.ids = std::move(ids)};
  }

  std::string token_text(TokenId id) const override {
    require_id(id, vocab_size());
    return texts_[static_cast<std::size_t>(id)];
  }

  std::optional<TokenId> role_id(SpecialToken role) const override {
    const auto found = vocabulary_.roles.find(role);
    if (found == vocabulary_.roles.end() || !vocabulary_.ids.contains(found->second)) return std::nullopt;
    return vocabulary_.ids.at(found->second);
  }

  void save(const std::filesystem::path& directory) const override {
    for (const auto& [name, content] : files_) write_file(directory / name, content);
  }

 protected:
  const EncodingTemplate& encoding_template() const override { return template_; }

  std::string text_of(std::span<const TokenId> ids, bool skips_special) const override {
    std::string text, pieces;
    for (const TokenId id : ids) {
      require_id(id, vocab_size());
      const auto place = static_cast<std::size_t>(id);
      if (!is_special_[place]) {
        pieces += texts_[place];
      } else if (!skips_special) {
        // Marian's class adds a space after each.
        text += joined_pieces(pieces) + texts_[place] + (vocabulary_.reads_codes ? " " : "");
        pieces.clear();
      }
    }
    return trimmed(text + joined_pieces(pieces));
  }

 private:
  void encode_part(std::string_view text, TokenIds& ids) const {
    if (vocabulary_.reads_codes && text.starts_with(">>") && text.find("<<") != text.npos) {
      const std::size_t end = text.find("<<") + 2;
      ids.push_back(id_of(std::string(text.substr(0, end))));
      text.remove_prefix(end);
    }
    for (const std::string& piece : model_.pieces(text)) ids.push_back(id_of(piece));
  }

  TokenId id_of(const std::string& token) const {
    const auto found = vocabulary_.ids.find(token);
    return found == vocabulary_.ids.end() ? unk_id_ : found->second;
  }

  SentencePieceTokenizer model_;
  MappedVocabulary vocabulary_;
  std::map<std::string, std::string> files_;
  std::vector<std::string> texts_;  // by id; "" for unused ids
  std::vector<bool> is_special_;
  ByteTrie special_;
  TokenId unk_id_ = 0;
  EncodingTemplate template_;
};

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

std::unique_ptr<MappedSentencePiece> mapped(const fs::path& path, const TokenizerSettings& settings,
                                            MappedVocabulary vocabulary,
                                            const std::vector<std::string>& names) {
  return std::make_unique<MappedSentencePiece>(SentencePieceTokenizer::load(path), std::move(vocabulary),
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
  auto tokenizer = mapped(path, settings, std::move(vocabulary), {"source.spm", "target.spm", "vocab.json"});
  if (path.filename() == "source.spm")
    tokenizer->target = read_marian(path.parent_path() / "target.spm", settings);
  return tokenizer;
}

TokenIds encode_target(const Tokenizer& tokenizer, std::string_view text) {
  const auto* mapped = dynamic_cast<const MappedSentencePiece*>(&tokenizer);
  if (mapped != nullptr && mapped->target) return mapped->target->encode(text, EncodeOptions{}).ids;
  for (const TokenId id : tokenizer.encode("", EncodeOptions{}).ids)
    if (!tokenizer.has_role(id))
      throw Error("the tokenizer puts ", tokenizer.token_text(id), " beside texts, which is the language of ",
                  "sources; name that of the targets: target_lang");
  return tokenizer.encode(text, EncodeOptions{}).ids;
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
  const nlohmann::json source = json.value("src_lang", nlohmann::json());
  vocabulary.before = {"__" + (source.is_string() ? source.get<std::string>() : "en") + "__"};
  vocabulary.after = {vocabulary.roles.at(SpecialToken::eos)};
  return mapped(path, settings, std::move(vocabulary), {"sentencepiece.bpe.model", "vocab.json"});
}

}  // namespace zoo
