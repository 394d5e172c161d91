#pragma once

#include <filesystem>
#include <memory>

#include "tokenizer/files/json_section.h"
#include "tokenizer/pipeline/pipeline.h"

namespace zoo {

/// Reads a tokenizer.json of Hugging Face's `tokenizers`. Throws Error naming the file and the key that is
/// missing, has the wrong type, or asks for something that is not supported.
std::unique_ptr<Tokenizer> read_tokenizer_json(const std::filesystem::path& path);

/// The parts that a tokenizer.json describes. Truncation and padding are left to who encodes. Throws Error
/// naming the file, the key and the type that is not known.
Pipeline read_pipeline(const JsonSection& root);

/// The sections of it, one function each, in the order in which they are read; they fill in what they say.
/// What Tokenizer::kind says of a model type. Throws Error if it is not known.
std::string kind_of_model(const JsonSection& root);
void read_normalizer(const JsonSection& root, Pipeline& pipeline);
void read_pre_tokenizer(const JsonSection& root, Pipeline& pipeline);
void read_model(const JsonSection& root, Pipeline& pipeline);
void read_added_tokens(const JsonSection& root, Pipeline& pipeline);
void read_post_processor(const JsonSection& root, Pipeline& pipeline);
void read_decoder(const JsonSection& root, Pipeline& pipeline);

/// {"String": "…"} or {"Regex": "…"} under `key`.
TextPattern read_pattern(const JsonSection& section, const char* key);

/// An entry of added_tokens, or of tokenizer_config.json.
AddedToken read_added_token(const JsonSection& section);

/// Throws Error: SECTION.type is TYPE, which is not among `known`.
[[noreturn]] void fail_unknown_type(const JsonSection& section, std::string_view what,
                                    std::string_view known);

}  // namespace zoo
