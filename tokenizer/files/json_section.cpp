#include "tokenizer/files/json_section.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using JsonKind = nlohmann::json::value_t;

// In the order of JsonType.
constexpr std::pair<JsonKind, const char*> kTypes[] = {{JsonKind::object, "an object"},
                                                       {JsonKind::array, "an array"},
                                                       {JsonKind::string, "a string"},
                                                       {JsonKind::boolean, "true or false"}};

}  // namespace

JsonSection::JsonSection(const std::filesystem::path& file, std::string key, const nlohmann::json& object)
    : file_(file), key_(std::move(key)), object_(object) {}

const nlohmann::json* JsonSection::find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const nlohmann::json& JsonSection::require(const char* key, JsonType type) const {
  const auto& [expected, name] = kTypes[static_cast<std::size_t>(type)];
  const nlohmann::json* value = find(key);
  if (value == nullptr) fail(key, "is missing: expected ", name);
  if (value->type() != expected) fail(key, "is ", value->type_name(), ": expected ", name);
  return *value;
}

JsonSection JsonSection::section(const char* key) const {
  return {file_, path_of(key), require(key, JsonType::object)};
}

std::vector<JsonSection> JsonSection::sections(const char* key) const {
  std::vector<JsonSection> result;
  for (const nlohmann::json& element : require(key, JsonType::array)) {
    const std::string place = std::string(key) + "[" + std::to_string(result.size()) + "]";
    if (!element.is_object()) fail(place, "is ", element.type_name(), ": expected an object");
    result.emplace_back(file_, path_of(place), element);
  }
  return result;
}

std::string JsonSection::text(const char* key) const {
  return require(key, JsonType::string).get<std::string>();
}

std::string JsonSection::text(const char* key, std::string if_absent) const {
  return find(key) == nullptr ? std::move(if_absent) : text(key);
}

char32_t JsonSection::character(const char* key, char32_t if_absent) const {
  if (find(key) == nullptr) return if_absent;
  const std::string value = text(key);
  std::size_t end = 0;
  const char32_t c = value.empty() ? 0 : next_code_point(value, end);
  if (value.empty() || end != value.size()) fail(key, "is '", value, "': expected one character");
  return c;
}

std::int64_t JsonSection::count(const char* key, std::int64_t if_absent) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return if_absent;
  constexpr std::uint64_t kLargest = 1u << 31;
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() > kLargest)
    fail(key, "is ", value->is_structured() ? value->type_name() : value->dump(),
         ": expected an integer that is not negative");
  return value->get<std::int64_t>();
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
