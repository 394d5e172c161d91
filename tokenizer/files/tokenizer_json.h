#pragma once

#include <filesystem>
#include <memory>

#include "tokenizer/files/json_section.h"
#include "tokenizer/files/tokenizer_settings.h"
#include "tokenizer/pipeline/pipeline.h"

namespace zoo {

/// Reads a tokenizer.json of Hugging Face's `tokenizers`. Throws Error naming the file and the key.
std::unique_ptr<Tokenizer> read_tokenizer_json(const std::filesystem::path& path, TokenizerSettings settings);

/// The file as read_tokenizer_json() understands it, for another reader: the parts of its class, all added
/// tokens, "cleans_up_spaces", and in place of "post_processor" "templates": {"single", "pair"}, lists of
/// pieces {"text": 0 or 1, "type"} and {"ids", "type"}. Throws as read_tokenizer_json() does.
nlohmann::json applied_tokenizer_json(const std::filesystem::path& path, TokenizerSettings settings);

/// Reads all parts; ignores truncation and padding, which callers choose.
Pipeline read_pipeline(const JsonSection& root);

/// The sections, in the order in which they are read. kind_of_model returns the Tokenizer::kind of a model
/// type and throws Error if the type is unknown.
std::string kind_of_model(const JsonSection& root);
void read_normalizer(const JsonSection& root, Pipeline& pipeline);
void read_pre_tokenizer(const JsonSection& root, Pipeline& pipeline);
void read_model(const JsonSection& root, Pipeline& pipeline);
void read_post_processor(const JsonSection& root, Pipeline& pipeline);
void read_decoder(const JsonSection& root, Pipeline& pipeline);

/// The parts of a section, which a Sequence has under the key `parts`; others are one part, null is none.
nlohmann::json parts_of(const nlohmann::json& root, const char* key, const char* parts);

/// The same of a section that is there; those of a Sequence inside a Sequence stand in its place.
std::vector<JsonSection> all_parts(const JsonSection& section, const char* parts);

/// The merges of a section "model": "a b", or ["a", "b"] in newer files.
MergePairs read_merges(const JsonSection& model);

/// {"String": "…"} or {"Regex": "…"} under `key`.
TextPattern read_pattern(const JsonSection& section, const char* key);

/// An entry of added_tokens or of tokenizer_config.json.
AddedToken read_added_token(const JsonSection& section);

/// Throws Error: SECTION.type is TYPE, which is not among `known`.
[[noreturn]] void fail_unknown_type(const JsonSection& section, std::string_view what,
                                    std::string_view known);

}  // namespace zoo
