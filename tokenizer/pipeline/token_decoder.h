#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tokenizer/text/text_pattern.h"

namespace zoo {

/// Changes the texts of tokens so that their concatenation is the decoded text: a decoder of tokenizer.json.
using TokenDecoder = std::function<void(std::vector<std::string>&)>;

/// Puts a space before every token except the first and those with `prefix`, which is removed. `cleanup`
/// removes the spaces before English punctuation.
TokenDecoder word_piece_decoder(std::string prefix, bool cleanup);
/// Turns GPT-2's alphabet into bytes; a token with other characters stays unchanged. Unless `is_last`,
/// invalid UTF-8 becomes U+FFFD.
TokenDecoder byte_level_decoder(bool is_last);
/// Turns the mark into spaces; `drops_first` removes that of the first token.
TokenDecoder metaspace_decoder(char32_t mark, bool drops_first);
TokenDecoder bpe_decoder(std::string suffix);
/// Turns <0xC3> <0xA9> into é; if a run is not UTF-8, each of its bytes becomes U+FFFD.
TokenDecoder byte_fallback_decoder();
/// Joins all tokens.
TokenDecoder fuse_decoder();
TokenDecoder replace_decoder(TextPattern pattern, std::string content);
/// Removes up to `start` copies of a character at the beginning of every token and up to `stop` at its end.
TokenDecoder strip_decoder(char32_t character, std::size_t start, std::size_t stop);
TokenDecoder decoder_sequence(std::vector<TokenDecoder> decoders);

/// Removes the spaces before punctuation and English contractions.
std::string clean_up_spaces(std::string text);

}  // namespace zoo
