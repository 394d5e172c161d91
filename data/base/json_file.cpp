#include "data/base/json_file.h"

#include <algorithm>
#include <string_view>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json_text.h"

namespace zoo {

namespace {

nlohmann::json parse_file(const std::filesystem::path& path, const std::string& text) {
  if (is_nested_too_deeply(text)) throw Error(path, ": arrays and objects are nested too deeply");
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::size_t at = std::min(error.byte == 0 ? 0 : error.byte - 1, text.size());
    const auto begin = text.begin(), fault = begin + static_cast<std::ptrdiff_t>(at);
    const auto line = 1 + std::count(begin, fault, '\n');
    const std::size_t line_start = text.rfind('\n', at == 0 ? 0 : at - 1);
    const std::size_t column = line_start == std::string::npos || line_start >= at ? at + 1 : at - line_start;
    throw Error(path, ": not valid JSON at line ", line, ", column ", column);
  } catch (const nlohmann::json::exception& error) {
    // The library's message quotes the number.
    const std::string_view message = error.what();
    const std::string_view number = message.substr(std::min(message.find('\''), message.size()));
    throw Error(path, ": the number ", number, " is too large for a double");
  }
}

}  // namespace

nlohmann::json read_json(const std::filesystem::path& path, std::size_t most) {
  return read_json(path, read_model_file(path, most));
}

nlohmann::json read_json(const std::filesystem::path& path, const std::string& text) {
  nlohmann::json value = parse_file(path, text);
  if (!value.is_object()) throw Error(path, ": expected a JSON object, found ", value.type_name());
  return value;
}

nlohmann::json read_json_array(const std::filesystem::path& path) {
  nlohmann::json value = parse_file(path, read_model_file(path, kMostSettings));
  if (!value.is_array()) throw Error(path, ": expected a JSON array, found ", value.type_name());
  return value;
}

void write_json(const std::filesystem::path& path, const nlohmann::json& value) {
  write_file(path, json_text(value, 2) + "\n");
}

}  // namespace zoo
