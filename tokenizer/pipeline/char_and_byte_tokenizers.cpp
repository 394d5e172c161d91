#include "tokenizer/pipeline/char_and_byte_tokenizers.h"

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json.h"
#include "tokenizer/pipeline/tokenizer_json_writer.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/token_id.h"

namespace zoo {
namespace {

using nlohmann::json;

constexpr char32_t kEndOfUnicode = 0x110000;

}  // namespace

CharTokenizer CharTokenizer::train(std::string_view text) {
  require_utf8(text, "the training text");
  if (text.empty()) throw Error("cannot train a char tokenizer: the training text is empty");
  std::vector<bool> occurs(kEndOfUnicode);
  for (std::size_t at = 0; at < text.size();) occurs[next_code_point(text, at)] = true;
  std::vector<char32_t> characters;
  for (char32_t c = 0; c < kEndOfUnicode; ++c)
    if (occurs[c]) characters.push_back(c);
  return CharTokenizer(std::move(characters));
}

CharTokenizer::CharTokenizer(std::vector<char32_t> characters) : characters_(std::move(characters)) {
  if (characters_.empty()) throw Error("a char tokenizer needs at least one character");
  for (std::size_t id = 0; id < characters_.size(); ++id) {
    const char32_t c = characters_[id];
    if (c >= kEndOfUnicode || (c >= 0xD800 && c < 0xE000))
      throw Error("code point ", +c, " is not a character");
    if (const TokenId known = ids_.find(c); known != CharacterIds::kNone)
      throw Error("the character ", describe_character(c), " has two ids, ", known, " and ", id);
    ids_.insert(c, static_cast<TokenId>(id));
  }
}

Encoding CharTokenizer::tokenize(std::string_view text, const EncodeOptions& options, bool) const {
  require_utf8(text, "the text");
  TokenIds ids(text.size());
  std::vector<ByteRange> offsets;
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    ids[count] = ids_.find(c);
    if (ids[count] == CharacterIds::kNone)
      throw Error("the character ", describe_character(c), " at byte ", begin, " (line ",
                  line_of(text, begin), ") is not in the vocabulary of ", vocab_size(), " characters");
    if (options.with_offsets)
      offsets.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at)});
  }
  ids.resize(count);
  std::vector<std::int32_t> words(offsets.size());
  return {.ids = std::move(ids), .offsets = std::move(offsets), .words = std::move(words)};
}

std::string CharTokenizer::text_of(std::span<const TokenId> ids, bool) const {
  std::string text;
  text.reserve(ids.size());
  for (const TokenId id : ids) {
    require_id(id, vocab_size());
    append_utf8(text, characters_[static_cast<std::size_t>(id)]);
  }
  return text;
}

void CharTokenizer::save(const std::filesystem::path& directory) const {
  std::vector<std::string> pieces(characters_.size());
  for (std::size_t id = 0; id < pieces.size(); ++id) append_utf8(pieces[id], characters_[id]);
  write_tokenizer_json(directory,
                       {{"decoder", {{"type", "Fuse"}}}, {"model", bpe_model_json(pieces, json::array())}});
  write_json(directory / "tokenizer_config.json", fast_tokenizer_config());
}

Encoding ByteTokenizer::tokenize(std::string_view text, const EncodeOptions& options, bool) const {
  require_utf8(text, "the text");
  Encoding encoding{.ids = TokenIds(text.size())};
  for (std::size_t i = 0; i < text.size(); ++i) encoding.ids[i] = static_cast<unsigned char>(text[i]);
  for (std::uint32_t i = 0; options.with_offsets && i < text.size(); ++i)
    encoding.offsets.push_back({i, i + 1});
  encoding.words.resize(encoding.offsets.size(), 0);
  return encoding;
}

std::string ByteTokenizer::text_of(std::span<const TokenId> ids, bool) const {
  std::string text;
  text.reserve(ids.size());
  for (const TokenId id : ids) {
    require_id(id, vocab_size());
    text += static_cast<char>(id);
  }
  return text;
}

void ByteTokenizer::save(const std::filesystem::path& directory) const {
  // The decoder ignores its settings; these are the values that `tokenizers` writes.
  write_tokenizer_json(directory, {{"pre_tokenizer", byte_level_json(false, true, false)},
                                   {"decoder", byte_level_json(true, true, true)},
                                   {"model", bpe_model_json(byte_level_alphabet(), json::array())}});
  write_json(directory / "tokenizer_config.json", fast_tokenizer_config());
}

}  // namespace zoo
