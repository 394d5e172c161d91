#include "tokenizer/json_section.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace zoo {
namespace {

struct Expected {
  nlohmann::json::value_t type;
  const char* name;
};

Expected expected_of(JsonType type) {
  switch (type) {
    case JsonType::object:
      return {nlohmann::json::value_t::object, "an object"};
    case JsonType::array:
      return {nlohmann::json::value_t::array, "an array"};
    case JsonType::string:
      return {nlohmann::json::value_t::string, "a string"};
    case JsonType::boolean:
      break;
  }
  return {nlohmann::json::value_t::boolean, "true or false"};
}

}  // namespace

JsonSection::JsonSection(const std::filesystem::path& file, std::string key, const nlohmann::json& object)
    : file_(file), key_(std::move(key)), object_(object) {}

const nlohmann::json* JsonSection::find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const nlohmann::json& JsonSection::require(const char* key, JsonType type) const {
  const Expected expected = expected_of(type);
  const nlohmann::json* value = find(key);
  if (value == nullptr) fail(key, "is missing: expected ", expected.name);
  if (value->type() != expected.type) fail(key, "is ", value->type_name(), ": expected ", expected.name);
  return *value;
}

JsonSection JsonSection::section(const char* key) const {
  return {file_, path_of(key), require(key, JsonType::object)};
}

bool JsonSection::flag(const char* key, bool if_absent) const {
  return find(key) == nullptr ? if_absent : require(key, JsonType::boolean).get<bool>();
}

std::string JsonSection::type_of(const char* key) const {
  return find(key) == nullptr ? "none" : section(key).require("type", JsonType::string).get<std::string>();
}

std::string JsonSection::path_of(std::string_view key) const {
  return key_.empty() ? std::string(key) : key_ + "." + std::string(key);
}

}  // namespace zoo
