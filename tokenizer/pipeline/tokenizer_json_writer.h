#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

struct AddedToken;
struct BertNormalizerOptions;

/// Writes tokenizer.json into an existing directory: version 1.0 with these sections; the others are null.
void write_tokenizer_json(const std::filesystem::path& directory, const nlohmann::json& sections);

/// {token: id}, as model.vocab and vocab.json hold it; tokens[id] is an id's text.
nlohmann::json vocabulary_json(std::span<const std::string> tokens);

/// A model section of type BPE; `merges` is a list of pairs of texts.
nlohmann::json bpe_model_json(std::span<const std::string> tokens, nlohmann::json merges);

/// A pre-tokenizer, post-processor or decoder of type ByteLevel.
nlohmann::json byte_level_json(bool add_prefix_space, bool trim_offsets, bool use_regex);

/// Parts of these types; of Split at the matches of an expression.
nlohmann::json sequence_json(const char* key, nlohmann::json parts);
nlohmann::json replace_json(nlohmann::json pattern, std::string_view content);
nlohmann::json split_json(std::string_view expression);
nlohmann::json metaspace_json(const char* scheme, bool split);
nlohmann::json bert_normalizer_json(const BertNormalizerOptions& options);

/// The decoder of sentencepiece's BPE with byte fallback.
nlohmann::json byte_fallback_decoder_json(bool drops_first_space);

/// A post-processor of type TemplateProcessing for one text, "A", and for two, "A" and "B", between special
/// tokens, whose ids `id` gives. `pair` begins as `single`; the rest is of `second_type`.
nlohmann::json template_json(const std::vector<std::string>& single, const std::vector<std::string>& pair,
                             const std::function<std::int64_t(const std::string&)>& id, int second_type = 1);

/// An entry of "added_tokens".
nlohmann::json added_token_json(const AddedToken& token);

/// A tokenizer_config.json that leaves tokenizer.json unchanged.
nlohmann::json fast_tokenizer_config();

}  // namespace zoo
