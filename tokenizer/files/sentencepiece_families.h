#pragma once

#include <filesystem>
#include <memory>

#include "tokenizer/tokenizer.h"

namespace zoo {

/// A sentencepiece model: T5's, ALBERT's or Llama's where the settings say so; the library's own otherwise.
/// Throws Error naming the file and what it expected.
std::unique_ptr<Tokenizer> read_sentencepiece(const std::filesystem::path& path);

}  // namespace zoo
