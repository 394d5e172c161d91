#pragma once

#include <filesystem>

#include <nlohmann/json_fwd.hpp>

#include "tokenizer/files/tokenizer_settings.h"

namespace zoo {

/// Replaces in the content of a tokenizer.json what the class settings.tokenizer_class of transformers builds
/// itself around the file's vocabulary: normalizer, pre_tokenizer, decoder, the model's options and the added
/// tokens. Of the file's normalizer some classes keep the Precompiled part. Returns false, and changes
/// nothing, if there is no such class, or one whose model is of another type than the file's: BertTokenizer
/// beside BPE. `file` is for messages.
bool rebuild_as_class(const TokenizerSettings& settings, const std::filesystem::path& file,
                      nlohmann::json& tokenizer_json);

/// Sets the same parts, normalizer, pre_tokenizer, decoder and kind, in a pipeline without a tokenizer.json,
/// whose `file` has the vocabulary of a class that rebuild_as_class() knows.
void set_class_parts(const TokenizerSettings& settings, const std::filesystem::path& file,
                     Pipeline& pipeline);

}  // namespace zoo
