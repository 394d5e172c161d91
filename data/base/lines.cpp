#include "data/base/lines.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json.h"

namespace zoo {

std::vector<Line> every_line(std::string_view text, std::string_view file) {
  std::vector<Line> lines;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({number, line, file});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<Line> lines_of(std::string_view text, std::string_view file) {
  std::vector<Line> lines = every_line(text, file);
  while (!lines.empty() && lines.back().text.empty()) lines.pop_back();
  return lines;
}

std::string_view text_section(std::string_view text, std::string_view name) {
  constexpr std::string_view kMark = "#: ";
  for (std::size_t at = text.find(kMark); at != text.npos; at = text.find(kMark, at)) {
    text.remove_prefix(at + kMark.size());
    at = text.find('\n') + 1;
    if (text.substr(0, at - 1) == name) return text.substr(at, text.find(kMark, at) - at);
  }
  throw Error("no section '", name, "'");
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<std::vector<std::int64_t>> numbers_between_commas(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (const std::string_view part : split(text, ',')) {
    const auto number = number_in<std::int64_t>(part);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<std::string> split_words(const std::string& text) {
  std::istringstream words(text);
  return std::vector<std::string>{std::istream_iterator<std::string>(words), {}};
}

std::string joined(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) text.append(i == 0 ? "" : separator).append(parts[i]);
  return text;
}

nlohmann::json parse_object(const Line& line) {
  nlohmann::json object = parse_json(line.text);
  if (!object.is_object()) throw Error(line, ": expected a JSON object");
  return object;
}

std::string text_under(const nlohmann::json& object, const std::string& key, const Line& line) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  if (found->is_string()) return found->get<std::string>();
  throw Error(line, ": '", key, "' must be a text, found ", found->type_name());
}

std::string label_under(const nlohmann::json& object, const std::string& key, const Line& line) {
  const auto found = object.find(key);
  const bool is_value = found != object.end() && (found->is_number() || found->is_boolean());
  return is_value ? found->dump() : text_under(object, key, line);
}

}  // namespace zoo
