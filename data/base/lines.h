#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// A line of a file, without its end; a '\r' before '\n' belongs to that.
struct Line {
  std::int64_t number;  // counted from 1
  std::string_view text;
};

/// The lines of a text, without the empty ones at its end.
std::vector<Line> lines_of(std::string_view text);

/// The parts between tabs, at least one.
std::vector<std::string_view> split_tabs(std::string_view line);

/// The parts with separators between them.
std::string joined(std::span<const std::string> parts, std::string_view separator = ", ");

/// The object that a line of a .jsonl file holds. Throws Error naming file and line.
nlohmann::json parse_object(const Line& line, const std::string& name);

/// The text, number or truth value under a key as text; "" if the key is absent or null. Throws Error naming
/// file, line and key for anything else.
std::string text_under(const nlohmann::json& object, const std::string& key, const Line& line,
                       const std::string& name);

}  // namespace zoo
