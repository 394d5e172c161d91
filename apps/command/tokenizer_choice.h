#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace zoo {

/// The kinds that can be trained: char, byte, byte_bpe, wordpiece, sentencepiece.
const std::vector<std::string>& tokenizer_kinds();

/// What `--tokenizer char|byte|byte_bpe|wordpiece|sentencepiece|DIR` asks for: "char" takes its characters
/// from `text`, the next three learn at most `vocab_size` tokens from it, sentencepiece with line ends and
/// runs of spaces kept; a directory is read. Throws Error if it is none of them. A directory that is called
/// "char" is meant by "./char".
std::unique_ptr<Tokenizer> choose_tokenizer(const std::string& choice, std::string_view text,
                                            std::int64_t vocab_size = 2000);

}  // namespace zoo
