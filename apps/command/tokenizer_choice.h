#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace zoo {

/// Kinds that can be trained.
inline const std::vector<std::string> kTokenizerKinds{"char", "byte", "byte_bpe", "wordpiece",
                                                      "sentencepiece"};

/// The tokenizer of `--tokenizer char|byte|byte_bpe|wordpiece|sentencepiece|DIR`. "char" uses the characters
/// of `text`; the others except byte learn at most `vocab_size` tokens from it, sentencepiece without
/// collapsing line ends and runs of spaces; DIR is loaded. Throws Error for any other value. Use "./char" for
/// a directory named "char".
std::unique_ptr<Tokenizer> choose_tokenizer(const std::string& choice, std::string_view text,
                                            std::int64_t vocab_size = 2000);

/// Throws Error if the directory holds a tokenizer of another kind, whose files would stay beside new ones: a
/// reader could not tell which kind is meant.
void require_same_kind(const std::filesystem::path& out_dir, std::string_view kind);

/// "" if a trained tokenizer has the requested number of tokens, else a note with the actual number.
std::string smaller_vocabulary(const std::string& choice, std::int64_t wanted, std::int64_t made);

}  // namespace zoo
