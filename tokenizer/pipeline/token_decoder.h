#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tokenizer/text/text_pattern.h"

namespace zoo {

/// Changes the texts of tokens so that, put together, they are the text: a decoder of tokenizer.json.
using TokenDecoder = std::function<void(std::vector<std::string>&)>;

/// A space before every token but the first and those that begin with `prefix`, which goes. Cleaning up takes
/// the spaces before English punctuation away again.
TokenDecoder word_piece_decoder(std::string prefix, bool cleanup);
/// GPT-2's characters for bytes back to bytes: a token with other characters stays as it is. With `is_last`
/// the bytes are left as they are, else those that are no UTF-8 become U+FFFD.
TokenDecoder byte_level_decoder(bool is_last);
/// The mark back to spaces; with `drops_first` the first token's go.
TokenDecoder metaspace_decoder(char32_t mark, bool drops_first);
TokenDecoder bpe_decoder(std::string suffix);
/// <0xC3> <0xA9> back to é, U+FFFD for each byte of a run that is no UTF-8.
TokenDecoder byte_fallback_decoder();
/// All tokens into one.
TokenDecoder fuse_decoder();
TokenDecoder replace_decoder(TextPattern pattern, std::string content);
/// Of every token up to `start` of a character at its beginning and up to `stop` at its end.
TokenDecoder strip_decoder(char32_t character, std::size_t start, std::size_t stop);
TokenDecoder decoder_sequence(std::vector<TokenDecoder> decoders);

/// Without the spaces that stand before punctuation and before English contractions.
std::string clean_up_spaces(std::string text);

}  // namespace zoo
