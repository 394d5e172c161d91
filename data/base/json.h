#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "data/base/atomic_file.h"

namespace zoo {

/// A JSON object in a model's file of at most `most` bytes. Throws Error naming file, line and column.
nlohmann::json read_json(const std::filesystem::path& path, std::size_t most = kMostSettings);

/// The same from the text of the file `path`.
nlohmann::json read_json(const std::filesystem::path& path, const std::string& text);

/// The same of an array.
nlohmann::json read_json_array(const std::filesystem::path& path);

/// Writes `value` atomically, indented by two and with a final newline.
void write_json(const std::filesystem::path& path, const nlohmann::json& value);

/// JSON for output, in which bytes that are not UTF-8 become U+FFFD. One line without `indent`.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

/// Where a text stops being JSON: the byte, and the last key of the outermost object before it.
struct JsonFault {
  std::size_t byte = 0;
  std::string key;
};

/// Parses input. The value is_discarded() if the text is not JSON, has a number too large for a double, or is
/// nested deeper than any of our files: the library copies and prints by recursion.
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text, JsonFault* fault = nullptr);

/// True if arrays and objects are nested too deeply for parse_json.
bool is_nested_too_deeply(std::string_view json);

}  // namespace zoo
