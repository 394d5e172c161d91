#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/base/error.h"

namespace zoo {

enum class JsonType { object, array, string, boolean };

/// An object of a JSON file and its key ("model", or "" for the root), which error messages name. A null
/// value counts as absent, as in `tokenizers`. The file's name and the object must outlive it.
class JsonSection {
 public:
  JsonSection(const std::filesystem::path& file, std::string key, const nlohmann::json& object);

  /// Throws Error "FILE: SECTION.KEY PARTS…".
  template <class... Parts> [[noreturn]] void fail(std::string_view key, const Parts&... parts) const {
    throw Error(file_, ": ", path_of(key), " ", parts...);
  }

  /// The value of a key; nullptr if it is absent.
  const nlohmann::json* find(const char* key) const;

  /// Throws Error if the key is absent or has another type.
  const nlohmann::json& require(const char* key, JsonType type) const;
  JsonSection section(const char* key) const;
  /// An array of objects: SECTION.KEY[0], SECTION.KEY[1], …
  std::vector<JsonSection> sections(const char* key) const;

  std::string text(const char* key) const;
  std::string text(const char* key, std::string if_absent) const;
  /// A text of one character.
  char32_t character(const char* key, char32_t if_absent) const;
  /// An integer >= 0.
  std::int64_t count(const char* key, std::int64_t if_absent) const;
  bool flag(const char* key, bool if_absent) const;
  /// The "type" of an optional object; "none" if it is absent.
  std::string type_of(const char* key) const;

  const std::filesystem::path& file() const { return file_; }
  const nlohmann::json& object() const { return object_; }

 private:
  std::string path_of(std::string_view key) const;

  const std::filesystem::path& file_;
  std::string key_;
  const nlohmann::json& object_;
};

}  // namespace zoo
