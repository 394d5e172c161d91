#pragma once

#include <algorithm>

#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"

namespace zoo::fuzz {

/// Encodes and decodes. A text that the vocabulary cannot write may be refused.
inline void use(const Tokenizer& tokenizer) {
  StreamDecoder decoder(tokenizer);
  for (TokenId id = 0; id < std::min<std::int64_t>(tokenizer.vocab_size(), 50); ++id) {
    tokenizer.token_text(id);
    decoder.push(id);
  }
  decoder.finish();
  for (const char* text : {"the cat e\u0301 \uFB01 \u4E16\n", " a  b", ""}) {
    const Encoding encoding = tokenizer.encode(text, {.with_offsets = true});
    tokenizer.decode(encoding.ids);
  }
}

}  // namespace zoo::fuzz
