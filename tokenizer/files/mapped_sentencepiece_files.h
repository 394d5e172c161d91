#pragma once

#include <filesystem>
#include <memory>

#include "tokenizer/files/tokenizer_settings.h"

namespace zoo {

// Sentencepiece models with the ids of a separate vocab.json. They throw Error naming the file and what was
// expected.

/// source.spm, with target.spm and vocab.json: Marian.
std::unique_ptr<Tokenizer> read_marian(const std::filesystem::path& path, TokenizerSettings settings);

/// sentencepiece.bpe.model with vocab.json: M2M-100. Other tokenizers of this file are refused.
std::unique_ptr<Tokenizer> read_m2m_100(const std::filesystem::path& path, TokenizerSettings settings);

}  // namespace zoo
