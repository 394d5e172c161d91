#include "tokenizer/tokenizer.h"

#include "data/base/error.h"

namespace zoo {

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  return assemble(encoding_template().single, tokenize(text, options.with_offsets), nullptr,
                  with_side(options));
}

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                const EncodeOptions& options) const {
  Encoding other = tokenize(second, options.with_offsets);
  return assemble(encoding_template().pair, tokenize(first, options.with_offsets), &other,
                  with_side(options));
}

std::vector<Encoding> Tokenizer::encode_windows(std::string_view first, std::string_view second,
                                                std::size_t stride, const EncodeOptions& options) const {
  return assemble_windows(encoding_template().pair, tokenize(first, options.with_offsets),
                          tokenize(second, options.with_offsets), stride, with_side(options));
}

EncodeOptions Tokenizer::with_side(EncodeOptions options) const {
  options.truncates_left = options.truncates_left || limits_.truncates_left;
  return options;
}

std::string Tokenizer::token_text(TokenId id) const {
  return decode({&id, 1});
}

void Tokenizer::lowercase_texts() {
  throw Error("a tokenizer of kind ", kind(), " cannot lowercase its texts");
}

Encoding Tokenizer::tokenize(std::string_view text, bool) const {
  return {.ids = encode(text)};
}

}  // namespace zoo
