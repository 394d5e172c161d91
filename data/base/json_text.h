#pragma once

/// @file
/// Use:
///
///     const nlohmann::json value = zoo::parse_json(R"({"a": 1})");
///     if (!value.is_discarded()) std::cout << zoo::json_text(value, /*indent=*/2) << "\n";

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// JSON for output. Bytes that are not UTF-8, such as half a character from a tokenizer or a path, become
/// U+FFFD. One line without `indent`.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

/// Parses input. The value is_discarded() if the text is not JSON, has a number too large for a double, or is
/// nested deeper than any of our files: the library copies and prints by recursion.
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);

/// True if arrays and objects are nested too deeply for parse_json.
bool is_nested_too_deeply(std::string_view json);

}  // namespace zoo
