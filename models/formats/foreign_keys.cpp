#include "models/formats/foreign_keys.h"

#include <algorithm>
#include <string_view>

#include <nlohmann/json.hpp>

namespace zoo::embedded {
extern const std::string_view kForeignKeys;  // foreign_keys.json
}

namespace zoo {
namespace {

// "neutral" and "of_no_numbers", each in its order.
const nlohmann::ordered_json& lists() {
  static const auto all = nlohmann::ordered_json::parse(embedded::kForeignKeys, nullptr, true, true);
  return all;
}

}  // namespace

bool is_foreign_key(const std::string& key) { return lists()["neutral"].contains(key); }

bool changes_no_numbers(const std::string& key) {
  const auto& names = lists()["of_no_numbers"];
  return std::find(names.begin(), names.end(), key) != names.end();
}

void refuse_foreign_keys(const ConfigReader& reader, const std::string& family) {
  for (const auto& [key, neutral] : lists()["neutral"].items()) {
    if (reader.was_asked_for(key) || reader.is(key.c_str(), neutral)) continue;
    reader.refuse(key.c_str(), "a key of other architectures, which may change the numbers of a " + family);
  }
}

}  // namespace zoo
