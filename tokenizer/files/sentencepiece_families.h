#pragma once

#include <filesystem>
#include <memory>

#include "tokenizer/files/tokenizer_settings.h"

namespace zoo {

/// Reads a sentencepiece model. If the settings name T5, ALBERT or Llama it runs as in transformers, else as
/// in the sentencepiece library. Throws Error naming the file and what was expected.
std::unique_ptr<Tokenizer> read_sentencepiece(const std::filesystem::path& path, TokenizerSettings settings);

}  // namespace zoo
