#include "tokenizer/tokenizer.h"

#include <nlohmann/json.hpp>

#include "data/base/error.h"

namespace zoo {

Encoding Tokenizer::checked(Encoding encoding) const {
  for (const TokenId id : encoding.ids) {
    if (id >= id_count_)
      throw Error("the text has the token ", nlohmann::json(token_text(id)).dump(), ", whose id is ", id,
                  ", but the model's vocabulary has only ", id_count_, " rows");
  }
  return encoding;
}

TokenIds Tokenizer::encode(std::string_view text) const {
  return checked(tokenize(text, {.with_offsets = false}, false)).ids;
}

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  return checked(
      assemble(encoding_template().single, tokenize(text, options, false), nullptr, with_side(options)));
}

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                const EncodeOptions& options) const {
  Encoding other = tokenize(second, options, true);
  return checked(
      assemble(encoding_template().pair, tokenize(first, options, false), &other, with_side(options)));
}

std::vector<Encoding> Tokenizer::encode_windows(std::string_view first, std::string_view second,
                                                std::size_t stride, const EncodeOptions& options) const {
  std::vector<Encoding> windows =
      assemble_windows(encoding_template().pair, tokenize(first, options, false),
                       tokenize(second, options, true), stride, with_side(options));
  for (Encoding& window : windows) window = checked(std::move(window));
  return windows;
}

EncodeOptions Tokenizer::with_side(EncodeOptions options) const {
  options.truncates_left = options.truncates_left || limits_.truncates_left;
  return options;
}

bool Tokenizer::has_role(TokenId id) const {
  using enum SpecialToken;
  for (const SpecialToken role : {bos, eos, unk, sep, pad, cls, mask})
    if (special_id(role) == id) return true;
  return false;
}

std::optional<TokenId> Tokenizer::special_id(SpecialToken role) const {
  const auto id = role_id(role);
  return id && *id < id_count_ ? id : std::nullopt;
}

std::string Tokenizer::token_text(TokenId id) const { return decode({&id, 1}); }

void Tokenizer::lowercase_texts() {
  throw Error("a tokenizer of kind ", kind(), " cannot lowercase its texts");
}

std::optional<TokenId> first_other_token(const Tokenizer& one, const Tokenizer& other) {
  const std::int64_t count = std::min(one.vocab_size(), other.vocab_size());
  for (TokenId id = 0; id < count; ++id)
    if (one.token_text(id) != other.token_text(id)) return id;
  return std::nullopt;
}

}  // namespace zoo
