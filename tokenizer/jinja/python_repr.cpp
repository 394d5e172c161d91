#include <algorithm>
#include <array>
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
  constexpr std::u32string_view kControls = U"\n\r\t";
  std::string result(1, quote);
  for (const char32_t c : characters_of(text)) {
    if (c == '\\' || c == static_cast<char32_t>(quote)) {
      (result += '\\') += static_cast<char>(c);
    } else if (const std::size_t control = kControls.find(c); control != kControls.npos) {
      (result += '\\') += "nrt"[control];
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
    const std::string part = repr(key, heap) + ": " + repr(value, heap);
    heap.spend(part.size());
    inside += (inside.empty() ? "" : ", ") + part;
  }
  return "{" + inside + "}";
}

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Heap& heap) : style_(style), heap_(heap) {}

  std::string write(const Value& value) {
    heap_.step();
    heap_.read(value);
    if (const std::string* text = text_in(value))
      return nlohmann::json(*text).dump(-1, ' ', style_.ensure_ascii);
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
      std::ranges::stable_sort(
          entries, [this](const auto& a, const auto& b) { return compare(a.first, b.first, heap_) < 0; });
    std::vector<std::string> parts;
    ++level_;
    for (const auto& [key, value] : entries) {
      heap_.spend(style_.after_key.size());
      const std::string name = text_in(key) ? write(key) : '"' + write(key) + '"';
      parts.push_back(name + style_.after_key + write(value));
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

constexpr std::size_t kField = 64;  // units of a format, in addition to its letters

std::string start_of(std::string_view text) { return "'" + utf8_of(characters_of(text).substr(0, 16)) + "'"; }

[[noreturn]] void refuse(std::string_view format, const Value& value) {
  throw Fault("the format " + start_of(format) + " of " + type_name(value) + " is not supported");
}

// The value in the format [0][width][.precision]type, which is removed from the front of `format`.
std::string formatted(std::string_view& format, const Value& value, bool escapes, Heap& heap) {
  heap.spend(kField);
  const std::string_view all = format;
  const auto take = [&](std::string_view letters, std::size_t most) {
    std::string taken(format.substr(0, most));
    taken.resize(std::min(taken.size(), taken.find_first_not_of(letters)));
    format.remove_prefix(taken.size());
    return taken;
  };
  const std::string zero = take("0", 1), width = take("0123456789", 2), point = take(".", 1),
                    precision = take("0123456789", 2), type = take("dfs", 1);
  if (all.starts_with('s')) return escapes ? escaped(value, heap) : str(value, heap);
  const bool is_real = type == "f" && is_number(value) && std::isfinite(number_of(value)),
             is_integer = type == "d" && is_integral(value) && precision.empty();
  if ((!is_real && !is_integer) || point.empty() != precision.empty()) refuse(all, value);
  std::array<char, 512> digits{};
  const int decimals = precision.empty() ? 6 : std::stoi(precision);
  const auto end = is_real ? std::to_chars(digits.begin(), digits.end(), number_of(value),
                                           std::chars_format::fixed, decimals)
                           : std::to_chars(digits.begin(), digits.end(), integer_of(value, ""));
  std::string text(digits.data(), end.ptr);
  const std::size_t size = width.empty() ? 0 : std::stoul(width);
  const std::size_t sign = !zero.empty() && text[0] == '-' ? 1 : 0;
  return text.insert(sign, std::max(size, text.size()) - text.size(), zero.empty() ? ' ' : '0');
}

// The argument of a field in braces: the next one, or that with the number or the name.
const Value& argument_of(std::string_view field, std::size_t& next, const Arguments& arguments) {
  constexpr std::size_t kNumbered = SIZE_MAX;  // Python refuses {} beside {0}
  std::size_t index = next;
  const char* const end = field.data() + field.size();
  const bool is_index = field.size() < 10 && std::from_chars(field.data(), end, index).ptr == end &&
                        (field.empty() || next == 0 || next == kNumbered);
  if (is_index && index < arguments.positional.size()) {
    next = field.empty() ? next + 1 : kNumbered;
    return arguments.positional[index];
  }
  for (const auto& [name, value] : arguments.named)
    if (name == field) return value;
  throw Fault("the field " + start_of(field) + " is not supported or has no argument");
}

}  // namespace

Value percent_formatted(const Value& format, const Value& arguments, Heap& heap) {
  const List* list = list_in(arguments);
  const bool is_tuple = list != nullptr && list->kind == ListKind::tuple;
  const std::vector<Value> values = is_tuple ? list->items : std::vector<Value>{arguments};
  std::string_view rest = *text_in(format);
  std::string result;
  std::size_t used = 0;
  for (std::size_t at = 0; (at = rest.find('%')) != std::string_view::npos;) {
    const bool is_percent = rest.substr(at + 1).starts_with('%');
    result += rest.substr(0, at + (is_percent ? 1 : 0));
    rest.remove_prefix(at + (is_percent ? 2 : 1));
    if (is_percent) continue;
    if (used == values.size()) throw Fault("a text has more formats than values");
    const std::string text = formatted(rest, values[used++], as<SafeText>(format) != nullptr, heap);
    heap.spend(text.size());
    result += text;
  }
  if (used != values.size()) throw Fault("a text has fewer formats than values");
  return marked_like(format, heap.text(result.append(rest)), heap);
}

Value brace_formatted(const Value& format, const Arguments& arguments, Heap& heap) {
  std::string_view rest = *text_in(format);
  std::string result;
  std::size_t next = 0;
  for (std::size_t at = 0; (at = rest.find_first_of("{}")) != std::string_view::npos;) {
    const bool is_brace = rest.substr(at + 1).starts_with(rest[at]);
    result += rest.substr(0, at + (is_brace ? 1 : 0));
    rest.remove_prefix(at + (is_brace ? 2 : 0));
    if (is_brace) continue;
    const std::size_t end = rest.find('}');
    if (end == 0 || end == std::string_view::npos) throw Fault("a brace has no partner");
    const std::string_view field = rest.substr(1, end - 1), name = field.substr(0, field.find(':'));
    rest.remove_prefix(end + 1);
    heap.spend(arguments.named.size());
    const Value& value = argument_of(name, next, arguments);
    std::string_view spec = name.size() + 1 < field.size() ? field.substr(name.size() + 1) : "";
    std::string_view left = spec.empty() ? "s" : spec;
    const std::string text = formatted(left, value, as<SafeText>(format) != nullptr, heap);
    if (!left.empty() || (spec.ends_with('s') && as<Text>(value) == nullptr)) refuse(spec, value);
    heap.spend(text.size());
    result += text;
  }
  return heap.text(result.append(rest));
}

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
  if (as<SafeText>(value)) return "Markup(" + repr_of_text(*text_in(value)) + ")";
  if (const std::string* text = text_in(value)) return repr_of_text(*text);
  if (const List* list = list_in(value)) return repr_of_list(*list, heap);
  if (const Dict* dict = dict_in(value)) return repr_of_dict(*dict, heap);
  throw Fault(type_name(value) + " is printed");
}

std::string str(const Value& value, Heap& heap) {
  if (const std::string* text = text_in(value)) return *text;
  return is_undefined(value) ? "" : repr(value, heap);
}

std::string json_dumps(const Value& value, const JsonStyle& style, Heap& heap) {
  return JsonWriter(style, heap).write(value);
}

}  // namespace zoo::chat
