#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace zoo {

/// Kinds that can be trained: char, byte, byte_bpe, wordpiece, sentencepiece.
const std::vector<std::string>& tokenizer_kinds();

/// The tokenizer of `--tokenizer char|byte|byte_bpe|wordpiece|sentencepiece|DIR`. "char" takes its characters
/// from `text`, the others except byte learn at most `vocab_size` tokens from it, sentencepiece with line
/// ends and runs of spaces kept; DIR is loaded. Throws Error for any other value. Use "./char" for a
/// directory named "char".
std::unique_ptr<Tokenizer> choose_tokenizer(const std::string& choice, std::string_view text,
                                            std::int64_t vocab_size = 2000);

/// "" if a tokenizer trained here has as many tokens as were asked for, else a line that says so.
std::string smaller_vocabulary(const std::string& choice, std::int64_t wanted, std::int64_t made);

}  // namespace zoo
