#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "tokenizer/sentencepiece/sentencepiece_file.h"
#include "tokenizer/sentencepiece/sentencepiece_library.h"
#include "tokenizer/sentencepiece/sentencepiece_unigram.h"
#include "tokenizer/text/utf8.h"
#include "tokenizer/token_id.h"

namespace zoo {
namespace {

// The library counts in int and needs 30 bytes for each of a text; a character may grow elevenfold.
constexpr std::size_t kMaxTextSize = 64u << 20;

void require_text(std::string_view text) {
  require_utf8(text, "the text");
  if (text.size() > kMaxTextSize)
    throw Error("sentencepiece encodes at most ", kMaxTextSize, " bytes at once, not ", text.size());
}

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(std::string model, const std::string& what)
    : model_(std::move(model)), processor_(std::make_shared<sentencepiece::SentencePieceProcessor>()) {
  silence_sentencepiece();
  const SentencePieceFile file = SentencePieceFile::parse(model_, what);
  is_like_t5_ = file.is_like_t5();
  const std::string unusable = what + ": not a sentencepiece model that can be used";
  sentencepiece::util::Status status;
  try {
    status = processor_->LoadFromSerializedProto(model_);
  } catch (const std::exception& error) {
    throw Error(unusable, ": ", error.what());
  }
  require_ok(status, unusable);
  try {
    file.require_utf8_pieces(what);
    if (SentencePieceUnigram::can_run(file)) unigram_ = std::make_shared<SentencePieceUnigram>(file);
  } catch (const Error&) {
    // The library accepts pieces and rules that are not UTF-8.
  }
}

SentencePieceTokenizer SentencePieceTokenizer::load(const std::filesystem::path& file) {
  return SentencePieceTokenizer(read_model_file(file), file.string());
}

SentencePieceTokenizer SentencePieceTokenizer::train(std::string_view text,
                                                     const SentencePieceOptions& options) {
  require_utf8(text, "the training text");
  return SentencePieceTokenizer(train_sentencepiece(text, options), "the trained sentencepiece model");
}

std::int64_t SentencePieceTokenizer::vocab_size() const { return processor_->GetPieceSize(); }

std::vector<std::string> SentencePieceTokenizer::pieces(std::string_view text) const {
  require_text(text);
  std::vector<std::string> pieces;
  require_ok(processor_->Encode(text, &pieces), "sentencepiece cannot encode the text");
  return pieces;
}

std::string SentencePieceTokenizer::text_of(std::span<const TokenId> ids, bool skips_special) const {
  for (const TokenId id : ids) require_id(id, vocab_size());
  const auto is_shown = [&](TokenId id) { return !skips_special && processor_->IsControl(id); };
  std::string text, part;
  while (!ids.empty()) {
    const auto special = std::ranges::find_if(ids, is_shown);
    require_ok(processor_->Decode(std::vector<int>(ids.begin(), special), &part),
               "sentencepiece cannot decode the ids");
    text += part;
    if (special == ids.end()) break;
    text += processor_->IdToPiece(*special);
    ids = {special + 1, ids.end()};
  }
  return text;
}

std::optional<TokenId> SentencePieceTokenizer::role_id(SpecialToken role) const {
  const int id = role == SpecialToken::eos   ? processor_->eos_id()
                 : role == SpecialToken::bos ? processor_->bos_id()
                 : role == SpecialToken::pad ? processor_->pad_id()
                 : role == SpecialToken::unk ? processor_->unk_id()
                                             : -1;
  return id < 0 ? std::nullopt : std::optional<TokenId>(id);
}

Encoding SentencePieceTokenizer::tokenize(std::string_view text, const EncodeOptions& options, bool) const {
  require_text(text);
  Encoding encoding;
  if (unigram_ != nullptr) unigram_->encode(text, encoding.ids);
  else require_ok(processor_->Encode(text, &encoding.ids), "sentencepiece cannot encode the text");
  if (!options.with_offsets) return encoding;
  const auto pieces = processor_->EncodeAsImmutableProto(text).pieces();
  for (const auto& piece : pieces) encoding.offsets.push_back({piece.begin(), piece.end()});
  // A word begins with a piece that begins with a space.
  std::int32_t word = -1;
  for (const TokenId id : encoding.ids) {
    const bool begins = processor_->IdToPiece(id).starts_with(kSpaceMark);
    if (begins || word < 0) ++word;
    encoding.words.push_back(word);
  }
  return encoding;
}

std::string SentencePieceTokenizer::token_text(TokenId id) const {
  require_id(id, vocab_size());
  return processor_->IdToPiece(id);
}

void SentencePieceTokenizer::save(const std::filesystem::path& directory) const {
  write_file(directory / "spiece.model", model_);
  if (!is_like_t5_) return;
  nlohmann::json config = {
      {"tokenizer_class", "T5Tokenizer"}, {"extra_ids", 0}, {"clean_up_tokenization_spaces", false}};
  for (const auto& [key, role] : {std::pair("unk_token", SpecialToken::unk),
                                  {"bos_token", SpecialToken::bos},
                                  {"eos_token", SpecialToken::eos},
                                  {"pad_token", SpecialToken::pad}})
    if (const auto id = role_id(role)) config[key] = processor_->IdToPiece(*id);
  write_json(directory / "tokenizer_config.json", config);
}

}  // namespace zoo
