#include "models/formats/config_reader.h"

#include <nlohmann/json.hpp>

#include "data/base/error.h"

namespace zoo {
namespace {

[[noreturn]] void wrong_type(const std::string& source, const char* key, const char* expected,
                             const nlohmann::json& value) {
  throw Error(source, ": '", key, "' must be ", expected, ", got ", value.dump());
}

}  // namespace

const nlohmann::json* ConfigReader::find(const char* key) const {
  asked_.insert(key);
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

bool ConfigReader::has(const char* key) const { return find(key) != nullptr; }

bool ConfigReader::is_null(const char* key) const {
  asked_.insert(key);
  const auto found = json_.find(key);
  return found != json_.end() && found->is_null();
}

bool ConfigReader::is(const char* key, const nlohmann::json& value) const {
  const nlohmann::json* found = find(key);
  return found == nullptr || *found == value;
}

std::int64_t ConfigReader::require_int(const char* key) const {
  if (!has(key)) throw Error(source_, ": the key '", key, "' is missing");
  return get_int(key, 0);
}

std::int64_t ConfigReader::get_int(const char* key, std::int64_t fallback) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number_integer()) wrong_type(source_, key, "an integer", *value);
  const bool fits = !value->is_number_unsigned() || value->get<std::uint64_t>() <= std::uint64_t{INT64_MAX};
  if (!fits) wrong_type(source_, key, "an integer of 64 bits", *value);
  return value->get<std::int64_t>();
}

double ConfigReader::get_double(const char* key, double fallback) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number()) wrong_type(source_, key, "a number", *value);
  return value->get<double>();
}

bool ConfigReader::get_bool(const char* key, bool fallback) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) wrong_type(source_, key, "true or false", *value);
  return value->get<bool>();
}

std::string ConfigReader::get_string(const char* key, const std::string& fallback) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) wrong_type(source_, key, "a string", *value);
  return value->get<std::string>();
}

std::vector<std::string> ConfigReader::get_names(const char* key) const {
  std::vector<std::string> names;
  const nlohmann::json* value = find(key);
  if (value == nullptr) return names;
  constexpr const char* kExpected = "an object of names for \"0\", \"1\", …";
  if (!value->is_object()) wrong_type(source_, key, kExpected, *value);
  for (std::size_t id = 0; id < value->size(); ++id) {
    const auto name = value->find(std::to_string(id));
    if (name == value->end() || !name->is_string()) wrong_type(source_, key, kExpected, *value);
    names.push_back(name->get<std::string>());
  }
  return names;
}

void ConfigReader::refuse(const char* key, const std::string& why) const {
  const nlohmann::json* value = find(key);
  throw Error(source_, ": '", key, "' is ",
              value != nullptr ? value->dump()
              : is_null(key)   ? "null"
                               : "absent",
              ", ", why);
}

}  // namespace zoo
