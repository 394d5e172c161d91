#pragma once

#include <filesystem>

#include "tokenizer/files/tokenizer_settings.h"

namespace zoo {

/// Adds the special tokens of a tokenizer.json's class that no file names: T5's sentinels, mBART's languages.
void add_class_tokens(TokenizerSettings& settings);

/// Removes the rules of special tokens that files set (lstrip, single_word, …), as Qwen2Tokenizer does.
void reset_special_tokens(const TokenizerSettings& settings, Pipeline& pipeline);

/// Replaces a tokenizer.json's template if the class has one, after apply_settings(). `file` is for messages.
void set_class_template(const TokenizerSettings& settings, Pipeline& pipeline,
                        const std::filesystem::path& file);

}  // namespace zoo
