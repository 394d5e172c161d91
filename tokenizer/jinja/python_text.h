#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/calls.h"

namespace zoo::chat {

/// Python's text functions: methods of str, str() and repr().

std::u32string characters_of(std::string_view text);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string capitalized(std::string_view text);
/// str.title(): letters after other characters become upper case, the others lower case.
std::string title_cased(std::string_view text);
/// The same of jinja2's filter, for which spaces, hyphens and brackets alone separate words.
std::string titled(std::string_view text);

/// The first occurrence of `part` from `from` on, and the last one, in linear time; npos: none.
std::size_t find_text(std::string_view text, std::string_view part, std::size_t from = 0);
std::size_t find_last_text(std::string_view text, std::string_view part);

enum class Side { left, right, both };
/// Without the characters of `set` at its ends; without white space if there is no set.
std::string stripped(std::string_view text, Side side, const std::string* set = nullptr);
/// split() at runs of white space, or at each separator; at most `most` times unless it is negative.
std::vector<std::string> split(std::string_view text, const std::string* separator, std::int64_t most,
                               bool from_right);
std::vector<std::string> split_lines(std::string_view text);
/// At most `most` occurrences, from the left, unless it is negative.
std::string replaced(std::string_view text, std::string_view old, std::string_view by, std::int64_t most,
                     Heap& heap);
bool is_python_space(char32_t c);

/// str() and repr(). Throws Fault for values without a useful text, such as a macro.
std::string str(const Value& value, Heap& heap);
std::string repr(const Value& value, Heap& heap);
/// str() with entities for & < > ' and ", but a text marked safe as it is.
std::string escaped(const Value& value, Heap& heap);
/// `format % arguments`, with formats such as %s, %03d, %.2f and %%. Throws Fault for any other.
Value percent_formatted(const Value& format, const Value& arguments, Heap& heap);
/// format.format(arguments), with fields such as {}, {0}, {name} and {:.2f}. Throws Fault for any other.
Value brace_formatted(const Value& format, const Arguments& arguments, Heap& heap);
/// A float as Python writes it: the fewest digits that give the same number.
std::string float_text(double number);

/// The filter or method that changes a text so.
template <std::string (*kChange)(std::string_view)> Value changed(const Value& value, Heap& heap) {
  return marked_like(value, heap.text(kChange(str(value, heap))), heap);
}

struct JsonStyle {
  std::string indent;  // of one level
  bool is_indented = false, ensure_ascii = false, sort_keys = false;
  std::string between_items, after_key;
};
/// json.dumps().
std::string json_dumps(const Value& value, const JsonStyle& style, Heap& heap);

}  // namespace zoo::chat
