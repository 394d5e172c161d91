#include "models/generation/generation_config.h"

#include <string>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json_file.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

bool is_id(const nlohmann::json& value) {
  return value.is_number_integer() &&
         (!value.is_number_unsigned() || value.get<std::uint64_t>() < (1ULL << 63)) &&
         value.get<std::int64_t>() >= 0;
}

std::optional<std::int64_t> read_id(const nlohmann::json& json, const char* key, const fs::path& path) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return std::nullopt;
  if (!is_id(*found)) throw Error(path.string(), ": '", key, "' must be an id, got ", found->dump());
  return found->get<std::int64_t>();
}

std::vector<std::int64_t> read_ids(const nlohmann::json& json, const char* key, const fs::path& path) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return {};
  const nlohmann::json list = found->is_array() ? *found : nlohmann::json::array({*found});
  std::vector<std::int64_t> ids;
  for (const nlohmann::json& id : list) {
    if (!is_id(id))
      throw Error(path.string(), ": '", key, "' must be an id or a list of ids, got ", found->dump());
    ids.push_back(id.get<std::int64_t>());
  }
  return ids;
}

}  // namespace

fs::path generation_config_path(const fs::path& directory) {
  const fs::path path = directory / "generation_config.json";
  return fs::exists(path) ? path : directory / "config.json";
}

GenerationDefaults read_generation_defaults(const fs::path& directory) {
  const fs::path path = generation_config_path(directory);
  const nlohmann::json json = read_json(path);
  GenerationDefaults defaults;
  defaults.eos_token_ids = read_ids(json, "eos_token_id", path);
  defaults.pad_token_id = read_id(json, "pad_token_id", path);
  defaults.bos_token_id = read_id(json, "bos_token_id", path);
  defaults.decoder_start_token_id = read_id(json, "decoder_start_token_id", path);
  return defaults;
}

}  // namespace zoo
