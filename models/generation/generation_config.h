#pragma once

/// @file
/// Use:
///
///     const zoo::CheckpointConfig checkpoint = zoo::read_checkpoint_config(directory);
///     const auto config = zoo::read_generation_config(directory, checkpoint.json);
///     zoo::GenerationOptions options;
///     options.eos_token_ids = zoo::defaults_of(config).eos_token_ids;

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "models/layers/transformer_config.h"
#include "tokenizer/token_id.h"

namespace zoo {

struct GenerationDefaults {
  TokenIds eos_token_ids;  // each of them ends a text; empty: none
  std::optional<TokenId> pad_token_id, bos_token_id, decoder_start_token_id;
};

/// The directory's generation_config.json or, if it is missing, its config.json, as in Hugging Face.
struct GenerationConfig {
  std::filesystem::path path;
  std::shared_ptr<const nlohmann::json> values;
};

/// `config` is the content of config.json. Throws Error naming the file.
GenerationConfig read_generation_config(const std::filesystem::path& directory,
                                        std::shared_ptr<const nlohmann::json> config);

/// The first token of an encoder-decoder's decoder: decoder_start_token_id of the defaults, else of the
/// model's configuration, else bos_token_id, as in transformers; -1: none.
std::int64_t decoder_start(const GenerationDefaults& defaults, const TransformerConfig& config);

/// Throws Error naming the file and the key whose value is not an id ("eos_token_id" may be a list of ids).
GenerationDefaults defaults_of(const GenerationConfig& config);

}  // namespace zoo
