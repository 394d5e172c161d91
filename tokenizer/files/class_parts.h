#pragma once

#include <filesystem>

#include <nlohmann/json_fwd.hpp>

#include "tokenizer/files/tokenizer_settings.h"

namespace zoo {

/// Replaces the parts of a tokenizer.json that transformers' class settings.tokenizer_class builds itself
/// around the file's vocabulary: normalizer, pre_tokenizer, decoder, the model's options and the added
/// tokens. Some classes keep the Precompiled part of the file's normalizer. Returns false, and changes
/// nothing, if there is no such class, or if its model has another type than the file's: BertTokenizer with
/// BPE. `file` is for messages.
bool rebuild_as_class(const TokenizerSettings& settings, const std::filesystem::path& file,
                      nlohmann::json& tokenizer_json);

/// Sets the same parts, normalizer, pre_tokenizer, decoder and kind, in a pipeline without a tokenizer.json,
/// whose `file` has the vocabulary of a class that rebuild_as_class() knows; `charsmap`: its sentencepiece
/// model's.
void set_class_parts(const TokenizerSettings& settings, const std::filesystem::path& file, Pipeline& pipeline,
                     std::string_view charsmap = "");

}  // namespace zoo
