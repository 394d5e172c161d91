#pragma once

#include <filesystem>

#include "tokenizer/files/tokenizer_settings.h"

namespace zoo {

/// Adds to `settings` the special tokens that the class of a tokenizer.json has without a file that names
/// them: T5's sentinels, mBART's languages.
void add_class_tokens(TokenizerSettings& settings);

/// Takes from the special tokens the rules that files give them (lstrip, single_word, …), as Qwen2Tokenizer
/// does.
void reset_special_tokens(const TokenizerSettings& settings, Pipeline& pipeline);

/// Replaces a tokenizer.json's template where the class has one of its own, after apply_settings(). `file` is
/// for messages.
void set_class_template(const TokenizerSettings& settings, Pipeline& pipeline,
                        const std::filesystem::path& file);

}  // namespace zoo
