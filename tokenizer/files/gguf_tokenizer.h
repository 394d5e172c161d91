#pragma once

#include <filesystem>
#include <memory>

#include "tokenizer/tokenizer.h"

namespace zoo {

/// Reads the tokenizer inside a GGUF file: byte-level BPE, sentencepiece's BPE ("llama") and unigram ("t5")
/// models, and WordPiece ("bert"). It runs as the equivalent tokenizer.json, which save() writes. Throws
/// Error naming the file and the key that is missing, wrong or unknown.
std::unique_ptr<Tokenizer> read_gguf_tokenizer(const std::filesystem::path& path);

/// True if the file is a GGUF file that holds a tokenizer.
bool has_gguf_tokenizer(const std::filesystem::path& path);

}  // namespace zoo
