#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace zoo {

/// A checkpoint's defaults for generation.
struct GenerationDefaults {
  std::vector<std::int64_t> eos_token_ids;  // each of them ends a text; empty: none
  std::optional<std::int64_t> pad_token_id, bos_token_id, decoder_start_token_id;
};

/// The directory's generation_config.json or, if it is missing, config.json.
std::filesystem::path generation_config_path(const std::filesystem::path& directory);

/// Reads the directory's generation_config.json or, if it is missing, config.json; like Hugging Face, only
/// one file. Throws Error naming the file and the key whose value is not an id ("eos_token_id" may be a list
/// of ids).
GenerationDefaults read_generation_defaults(const std::filesystem::path& directory);

}  // namespace zoo
