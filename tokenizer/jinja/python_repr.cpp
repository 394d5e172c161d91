#include <algorithm>
#include <charconv>
#include <cmath>

#include <nlohmann/json.hpp>
#include <unicode/uchar.h>

#include "tokenizer/jinja/python_text.h"
#include "tokenizer/text/utf8.h"

namespace zoo::chat {
namespace {

std::string hexadecimal(char prefix, int width, std::uint32_t number) {
  std::string digits(static_cast<std::size_t>(width), '0');
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, number /= 16)
    *digit = "0123456789abcdef"[number % 16];
  return std::string("\\") + prefix + digits;
}

bool is_printable(char32_t c) {
  constexpr std::uint32_t kHidden = U_GC_C_MASK | U_GC_ZL_MASK | U_GC_ZP_MASK | U_GC_ZS_MASK;
  return c == ' ' || (U_GET_GC_MASK(static_cast<UChar32>(c)) & kHidden) == 0;
}

std::string repr_of_text(const std::string& text) {
  const bool has_single = text.find('\'') != std::string::npos,
             has_double = text.find('"') != std::string::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string result(1, quote);
  for (const char32_t c : characters_of(text)) {
    if (c == '\\' || c == static_cast<char32_t>(quote)) {
      (result += '\\') += static_cast<char>(c);
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\r') {
      result += "\\r";
    } else if (c == '\t') {
      result += "\\t";
    } else if (is_printable(c)) {
      append_utf8(result, c);
    } else {
      result += c < 0x100     ? hexadecimal('x', 2, c)
                : c < 0x10000 ? hexadecimal('u', 4, c)
                              : hexadecimal('U', 8, c);
    }
  }
  return result + quote;
}

std::string repr_of_list(const List& list, Heap& heap) {
  if (list.kind > ListKind::tuple) throw Fault("a range, view or generator is printed; add '| list'");
  std::string inside;
  for (const Value& item : list.items) {
    const std::string part = repr(item, heap);
    heap.spend(part.size());
    inside += (inside.empty() ? "" : ", ") + part;
  }
  if (list.kind == ListKind::list) return "[" + inside + "]";
  return "(" + inside + (list.items.size() == 1 ? ",)" : ")");
}

std::string repr_of_dict(const Dict& dict, Heap& heap) {
  std::string inside;
  for (const auto& [key, value] : dict.entries) {
    const std::string part = repr_of_text(key) + ": " + repr(value, heap);
    heap.spend(part.size());
    inside += (inside.empty() ? "" : ", ") + part;
  }
  return "{" + inside + "}";
}

std::string json_of_text(const std::string& text, bool ensure_ascii) {
  return nlohmann::json(text).dump(-1, ' ', ensure_ascii);
}

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Heap& heap) : style_(style), heap_(heap) {}

  std::string write(const Value& value) {
    heap_.step();
    heap_.read(value);
    if (const std::string* text = text_in(value)) return json_of_text(*text, style_.ensure_ascii);
    if (as<None>(value)) return "null";
    if (const auto* flag = as<bool>(value)) return *flag ? "true" : "false";
    if (const auto* number = as<double>(value)) {
      if (std::isnan(*number)) return "NaN";
      return std::isinf(*number) ? (*number > 0 ? "Infinity" : "-Infinity") : float_text(*number);
    }
    if (as<std::int64_t>(value)) return str(value, heap_);
    if (const Dict* dict = dict_in(value)) return enclose("{", "}", dict_parts(*dict));
    const List* list = list_in(value);
    if (list == nullptr || list->kind > ListKind::tuple)
      throw Fault("tojson cannot write " + type_name(value));
    std::vector<std::string> parts;
    ++level_;
    for (const Value& item : list->items) parts.push_back(write(item));
    --level_;
    return enclose("[", "]", parts);
  }

 private:
  std::vector<std::string> dict_parts(const Dict& dict) {
    auto entries = dict.entries;
    if (style_.sort_keys)
      std::sort(entries.begin(), entries.end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> parts;
    ++level_;
    for (const auto& [key, value] : entries) {
      heap_.spend(key.size() + style_.after_key.size());
      parts.push_back(json_of_text(key, style_.ensure_ascii) + style_.after_key + write(value));
    }
    --level_;
    return parts;
  }

  std::string new_line(int level) const {
    if (!style_.is_indented) return "";
    std::string line = "\n";
    heap_.spend(style_.indent.size() * static_cast<std::size_t>(level));
    for (int i = 0; i < level; ++i) line += style_.indent;
    return line;
  }

  std::string enclose(const char* open, const char* close, const std::vector<std::string>& parts) {
    if (parts.empty()) return std::string(open) + close;
    std::string result = open;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      heap_.spend(parts[i].size() + style_.between_items.size());
      result += (i == 0 ? "" : style_.between_items) + new_line(level_ + 1) + parts[i];
    }
    return result + new_line(level_) + close;
  }

  const JsonStyle& style_;
  Heap& heap_;
  int level_ = 0;
};

}  // namespace

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto scientific =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific);
  const std::string text(buffer, scientific.ptr);
  const int exponent = std::stoi(text.substr(text.find('e') + 1));
  if (exponent < -4 || exponent >= 16) return text;
  const auto fixed = std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::fixed);
  std::string digits(buffer, fixed.ptr);
  return digits.find('.') == std::string::npos ? digits + ".0" : digits;
}

std::string repr(const Value& value, Heap& heap) {
  heap.step();
  heap.read(value);
  if (is_undefined(value)) return "Undefined";
  if (as<None>(value)) return "None";
  if (const auto* flag = as<bool>(value)) return *flag ? "True" : "False";
  if (const auto* integer = as<std::int64_t>(value)) return std::to_string(*integer);
  if (const auto* number = as<double>(value)) return float_text(*number);
  if (const std::string* text = text_in(value)) return repr_of_text(*text);
  if (const List* list = list_in(value)) return repr_of_list(*list, heap);
  if (const Dict* dict = dict_in(value)) return repr_of_dict(*dict, heap);
  throw Fault(type_name(value) + " is printed");
}

std::string str(const Value& value, Heap& heap) {
  if (const std::string* text = text_in(value)) return *text;
  if (const auto* safe = as<SafeText>(value)) return *safe->text;
  return is_undefined(value) ? "" : repr(value, heap);
}

std::string json_dumps(const Value& value, const JsonStyle& style, Heap& heap) {
  return JsonWriter(style, heap).write(value);
}

}  // namespace zoo::chat
