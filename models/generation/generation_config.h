#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace zoo {

/// What a checkpoint says about generating.
struct GenerationDefaults {
  std::vector<std::int64_t> eos_token_ids;  // each of them ends a text; empty: nothing does
  std::optional<std::int64_t> pad_token_id, bos_token_id, decoder_start_token_id;
};

/// Reads the directory's generation_config.json or, if there is none, config.json: as Hugging Face, one file
/// alone. Throws Error naming the file and the key whose value is no id ("eos_token_id" may be a list of
/// them).
GenerationDefaults read_generation_defaults(const std::filesystem::path& directory);

}  // namespace zoo
