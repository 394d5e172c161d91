#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// A line of a file without its line end, "\n" or "\r\n"; in a message "FILE, line 3".
struct Line {
  std::int64_t number;  // counted from 1
  std::string_view text;
  std::string_view file = {};

  friend std::ostream& operator<<(std::ostream& out, const Line& line) {
    return out << line.file << ", line " << line.number;
  }
};

/// The lines of a text.
std::vector<Line> every_line(std::string_view text, std::string_view file = {});
/// The same without empty ones at its end.
std::vector<Line> lines_of(std::string_view text, std::string_view file = {});

/// The lines of a text after the line "#: NAME", up to the next such line. Throws Error if there is none.
std::string_view text_section(std::string_view text, std::string_view name);

/// The parts between separators: at least one.
std::vector<std::string_view> split(std::string_view text, char separator);

/// The words between white space.
std::vector<std::string> split_words(const std::string& text);

/// The number that is the text as a whole, without spaces; nothing for another text.
template <class Number, class... Base> std::optional<Number> number_in(std::string_view text, Base... base) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base...);
  const bool good = error == std::errc() && end == text.data() + text.size();
  return good ? std::optional<Number>(number) : std::nullopt;
}

/// The numbers between commas, at least one; nothing for another text.
std::optional<std::vector<std::int64_t>> numbers_between_commas(std::string_view text);

/// Joins the parts with `separator`.
std::string joined(std::span<const std::string> parts, std::string_view separator = ", ");

/// The object in a line of a .jsonl file. Throws Error naming file and line.
nlohmann::json parse_object(const Line& line);

/// The text of a key; "" if it is absent or null. Throws Error naming file, line and key for other types.
std::string text_under(const nlohmann::json& object, const std::string& key, const Line& line);
/// The same of a label, which may be a number or a boolean.
std::string label_under(const nlohmann::json& object, const std::string& key, const Line& line);

}  // namespace zoo
