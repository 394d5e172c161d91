#pragma once

/// @file
/// Use:
///
///     const zoo::ConfigReader reader(json, "config.json");
///     const std::int64_t layers = reader.require_int("num_hidden_layers");
///     const double eps = reader.get_double("rms_norm_eps", 1e-6);

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// Typed access to the keys of a config.json. An absent or null key is "not given". A value of another type
/// throws Error naming the file, the key, the expected type and the value.
class ConfigReader {
 public:
  /// `source` names the file in messages. `json` must outlive the reader.
  ConfigReader(const nlohmann::json& json, std::string source) : json_(json), source_(std::move(source)) {}

  bool has(const char* key) const;
  /// True if the key is present and null.
  bool is_null(const char* key) const;
  /// True if the key is not given or equals `value`.
  bool is(const char* key, const nlohmann::json& value) const;
  /// Value of a given key: has() must be true.
  const nlohmann::json& at(const char* key) const { return *find(key); }
  std::int64_t require_int(const char* key) const;
  std::int64_t get_int(const char* key, std::int64_t fallback) const;
  double get_double(const char* key, double fallback) const;
  bool get_bool(const char* key, bool fallback) const;
  std::string get_string(const char* key, const std::string& fallback) const;
  /// Names of an object {"0": NAME, "1": NAME, …} without gaps, in the order of their numbers; empty if the
  /// key is not given.
  std::vector<std::string> get_names(const char* key) const;

  /// Throws Error saying that `key` asks for something that the zoo does not support.
  [[noreturn]] void refuse(const char* key, const std::string& why) const;

  /// True if one of the functions above has been called for the key.
  bool was_asked_for(const std::string& key) const { return asked_.count(key) != 0; }

  const std::string& source() const { return source_; }

 private:
  const nlohmann::json* find(const char* key) const;

  const nlohmann::json& json_;
  std::string source_;
  mutable std::set<std::string> asked_;
};

}  // namespace zoo
