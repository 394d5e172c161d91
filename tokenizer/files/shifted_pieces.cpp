#include <algorithm>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "tokenizer/files/file_readers.h"
#include "tokenizer/files/tokenizer_class.h"
#include "tokenizer/sentencepiece/sentencepiece_file.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// Builds a tokenizer from a file's pieces and the tokens around them.
class ShiftedPieces {
 public:
  ShiftedPieces(const fs::path& path, TokenizerSettings& settings)
      : path_(path),
        file_(SentencePieceFile::parse(read_model_file(path), path.string())),
        settings_(settings) {
    file_.require_utf8_pieces(path.string());
    if (!file_.is_unigram || file_.has_byte_fallback)
      throw Error(path, ": expected a unigram model without byte fallback, which ", settings.tokenizer_class,
                  " runs");
    const fs::path config = path.parent_path() / "tokenizer_config.json";
    config_ = fs::exists(config) ? read_json(config) : nlohmann::json::object();
  }

  Pipeline mbart(bool has_50_languages) {
    for (const SpecialToken role :
         {SpecialToken::cls, SpecialToken::pad, SpecialToken::eos, SpecialToken::unk})
      add(role_text(role), 0);
    add_pieces_from(3);
    for (const std::string_view language : mbart_languages(has_50_languages)) {
      add(std::string(language), 0);
      mark_special(std::string(language));
    }
    add(role_text(SpecialToken::mask), 0);
    settings_.roles.at(SpecialToken::mask).lstrip = true;
    const std::string source = settings_.src_lang.value_or("en_XX");
    if (std::ranges::count(settings_.additional_special_tokens, source, &AddedToken::content) == 0)
      throw Error(path_, ": there is no language '", source, "' (src_lang in tokenizer_config.json)");
    return made(3);
  }

  // Zhang et al., 2020: two masks, and <unk_2> and so on, used only in pretraining, up to the offset.
  Pipeline pegasus() {
    const bool is_named = std::ranges::count(settings_.named, SpecialToken::mask) > 0;
    const std::string sentence_mask = text_of("mask_token_sent", "<mask_1>");
    // The order of the masks if files do not name them.
    const std::string first = is_named ? role_text(SpecialToken::mask) : "<mask_1>";
    const std::string second = text_of("mask_token_sent", "<mask_2>");
    add(role_text(SpecialToken::pad), 0);
    add(role_text(SpecialToken::eos), 0);
    add(first, 0);
    if (second != first) add(second, 0);
    settings_.additional_special_tokens.clear();
    mark_special(sentence_mask);
    for (std::int64_t i = 2; i < offset(); ++i) {
      const std::string unused = "<unk_" + std::to_string(i) + ">";
      add(unused, -100);
      mark_special(unused);
    }
    add_pieces_from(2);
    const auto unknown = find_unknown(1);
    if (!unknown) throw Error(path_, ": has no piece ", role_text(SpecialToken::unk));
    return made(*unknown);
  }

  // He et al., 2023: pieces keep their ids, and the mask comes after them.
  Pipeline deberta() {
    add_pieces_from(0);
    mark_special(role_text(SpecialToken::mask));
    return made(find_unknown(0).value_or(1));
  }

 private:
  // The unknown token's piece, from `first` on.
  std::optional<TokenId> find_unknown(std::size_t first) const {
    for (std::size_t id = first; id < pieces_.size(); ++id)
      if (pieces_[id].text == role_text(SpecialToken::unk) && pieces_[id].score == 0)
        return static_cast<TokenId>(id);
    return std::nullopt;
  }

  std::string text_of(const char* key, const std::string& absent) const {
    const nlohmann::json value = config_.value(key, nlohmann::json());
    if (value.is_null()) return absent;
    if (!value.is_string()) throw Error(path_, ": ", key, " in tokenizer_config.json must be a text");
    return value.get<std::string>();
  }

  std::int64_t offset() const {
    const nlohmann::json value = config_.value("offset", nlohmann::json(103));
    constexpr std::int64_t kMost = 1'000'000;
    if (!value.is_number_integer() || value < 2 || value > kMost)
      throw Error(path_, ": offset in tokenizer_config.json must be in [2, ", kMost, "], got ", value.dump());
    return value.get<std::int64_t>();
  }

  const std::string& role_text(SpecialToken role) const { return settings_.roles.at(role).content; }

  void add(const std::string& text, float score) { pieces_.push_back({text, score}); }

  void mark_special(const std::string& text) {
    settings_.additional_special_tokens.push_back(special_token(text));
  }

  // The class has its own order for the first pieces.
  void add_pieces_from(std::size_t first) {
    if (file_.pieces.size() <= first) throw Error(path_, ": has only ", file_.pieces.size(), " pieces");
    for (std::size_t i = first; i < file_.pieces.size(); ++i)
      add(file_.pieces[i].text, file_.pieces[i].score);
  }

  Pipeline made(TokenId unk_id) const {
    return unigram_pipeline(settings_, path_, file_.charsmap, pieces_, unk_id);
  }

  fs::path path_;
  SentencePieceFile file_;
  TokenizerSettings& settings_;
  nlohmann::json config_;
  std::vector<UnigramPiece> pieces_;
};

}  // namespace

std::vector<std::string_view> mbart_languages(bool has_50) {
  std::vector<std::string_view> languages = class_words("mbart languages");
  for (const std::string_view more : class_words("mbart-50 languages"))
    if (has_50) languages.push_back(more);
  return languages;
}

std::unique_ptr<Tokenizer> read_shifted_pieces(const fs::path& path, TokenizerSettings settings) {
  const std::string& name = settings.tokenizer_class;
  const bool is_mbart_50 = name == "MBart50Tokenizer";
  if (name != "PegasusTokenizer" && name != "DebertaV2Tokenizer" && name != "MBartTokenizer" && !is_mbart_50)
    throw Error(path,
                ": expected PegasusTokenizer, DebertaV2Tokenizer, MBartTokenizer or MBart50Tokenizer as "
                "tokenizer_class in tokenizer_config.json");
  ShiftedPieces pieces(path, settings);
  Pipeline pipeline = name == "PegasusTokenizer"     ? pieces.pegasus()
                      : name == "DebertaV2Tokenizer" ? pieces.deberta()
                                                     : pieces.mbart(is_mbart_50);
  return tokenizer_of(std::move(pipeline), settings, path);
}

}  // namespace zoo
