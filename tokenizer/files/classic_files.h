#pragma once

#include <filesystem>
#include <memory>

#include "tokenizer/files/tokenizer_settings.h"

namespace zoo {

/// Tokenizers in the older files without tokenizer.json, built as in transformers' class that
/// tokenizer_config.json (else config.json) names. All functions throw Error naming the file and what was
/// expected.

/// vocab.txt, one token per line: BERT.
std::unique_ptr<Tokenizer> read_vocab_txt(const std::filesystem::path& path, TokenizerSettings settings);

/// vocab.json with merges.txt: GPT-2 or RoBERTa.
std::unique_ptr<Tokenizer> read_vocab_json(const std::filesystem::path& path, TokenizerSettings settings);

/// The tokens of a vocab.json and their ids.
std::vector<VocabularyEntry> read_vocabulary_object(const std::filesystem::path& path);

}  // namespace zoo
