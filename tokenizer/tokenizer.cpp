#include "tokenizer/tokenizer.h"

namespace zoo {

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  return assemble(encoding_template().single, tokenize(text, options.with_offsets), nullptr, options);
}

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                const EncodeOptions& options) const {
  Encoding other = tokenize(second, options.with_offsets);
  return assemble(encoding_template().pair, tokenize(first, options.with_offsets), &other, options);
}

std::string Tokenizer::token_text(TokenId id) const {
  return decode({&id, 1});
}

Encoding Tokenizer::tokenize(std::string_view text, bool) const {
  return {.ids = encode(text)};
}

}  // namespace zoo
