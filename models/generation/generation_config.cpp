#include "models/generation/generation_config.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// First conversions of Llama have -1.
bool is_none(const nlohmann::json& id) {
  return id.is_null() || (id.is_number_integer() && !id.is_number_unsigned() && id == -1);
}

TokenIds read_ids(const GenerationConfig& config, const char* key, bool may_be_list) {
  const auto found = config.values->find(key);
  if (found == config.values->end() || is_none(*found)) return {};
  TokenIds ids;
  for (const nlohmann::json& id :
       may_be_list && found->is_array() ? *found : nlohmann::json::array({*found})) {
    if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<TokenId>::max())
      throw Error(config.path.string(), ": '", key, "' must be an id", may_be_list ? " or a list of ids" : "",
                  ", got ", found->dump());
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

}  // namespace

GenerationConfig read_generation_config(const fs::path& directory,
                                        std::shared_ptr<const nlohmann::json> config) {
  if (fs::is_regular_file(directory)) return {directory, std::move(config)};
  const fs::path path = directory / "generation_config.json";
  if (!fs::exists(path)) return {directory / "config.json", std::move(config)};
  return {path, std::make_shared<const nlohmann::json>(read_json(path))};
}

std::int64_t decoder_start(const GenerationDefaults& defaults, const TransformerConfig& config) {
  if (defaults.decoder_start_token_id) return *defaults.decoder_start_token_id;
  return config.decoder_start_token_id >= 0 ? config.decoder_start_token_id
                                            : defaults.bos_token_id.value_or(-1);
}

GenerationDefaults defaults_of(const GenerationConfig& config) {
  const auto id = [&config](const char* key) {
    const TokenIds ids = read_ids(config, key, /*may_be_list=*/false);
    return ids.empty() ? std::nullopt : std::optional(ids[0]);
  };
  return {.eos_token_ids = read_ids(config, "eos_token_id", /*may_be_list=*/true),
          .pad_token_id = id("pad_token_id"),
          .bos_token_id = id("bos_token_id"),
          .decoder_start_token_id = id("decoder_start_token_id")};
}

}  // namespace zoo
