#include <fstream>

#include <nlohmann/json.hpp>

#include "apps/hub/hub_cache.h"
#include "apps/serve/endpoints/endpoints.h"
#include "data/base/error.h"
#include "data/base/json.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostRows = 2000;

ordered_json number(const ordered_json& row, const char* name) {
  const auto found = row.find(name);
  return found != row.end() && found->is_number() ? *found : ordered_json();
}

}  // namespace

std::string watched_run(const std::filesystem::path& run) {
  const std::filesystem::path path = run / "metrics.jsonl";
  std::ifstream file(path);
  if (!file) throw Error(path, " cannot be read: is this the directory of a training run?");
  std::vector<ordered_json> rows;
  for (std::string line; std::getline(file, line);) {
    // The last line may be half written.
    const ordered_json row = parse_ordered_json(line);
    if (!row.is_object() || !row.contains("iter")) continue;
    rows.push_back({number(row, "iter"), number(row, "train_loss"), number(row, "val_loss"),
                    number(row, "tokens_per_second")});
  }
  const std::size_t step = rows.size() / kMostRows + 1;
  ordered_json kept = ordered_json::array();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (i % step == 0 || i + 1 == rows.size() || !rows[i][2].is_null()) kept.push_back(std::move(rows[i]));
  return json_text(ordered_json{{"name", model_name(run)}, {"rows", std::move(kept)}});
}

}  // namespace zoo
