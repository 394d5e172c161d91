#pragma once

#include <filesystem>
#include <memory>

#include "tokenizer/tokenizer.h"

namespace zoo {

/// Tokenizers in the files from before tokenizer.json, put together as transformers does it for the class
/// that tokenizer_config.json (else config.json) names. All throw Error naming the file and what it expected.

/// vocab.txt, a token a line: BERT's.
std::unique_ptr<Tokenizer> read_vocab_txt(const std::filesystem::path& path);

/// vocab.json, with merges.txt beside it: GPT-2's, or RoBERTa's.
std::unique_ptr<Tokenizer> read_vocab_json(const std::filesystem::path& path);

}  // namespace zoo
