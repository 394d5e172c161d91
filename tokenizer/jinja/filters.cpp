#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "tokenizer/jinja/calls.h"
#include "tokenizer/jinja/python_text.h"

namespace zoo::chat {
namespace {

using Filter = Value (*)(const Value&, const Arguments&, Heap&);

bool flag(const Value* argument, bool if_absent = false) {
  return argument == nullptr ? if_absent : is_true(*argument);
}

// sort, unique, min and max ignore case by default.
Value folded(const Value& value, bool case_sensitive, Heap& heap) {
  const std::string* text = text_in(value);
  return text == nullptr || case_sensitive ? value : heap.text(to_lower(*text));
}

// The part of an item at the path "a.b.0"; without a path, the item.
Value part_of(Value value, const Value* path, Heap& heap) {
  if (path == nullptr || as<None>(*path)) return value;
  if (as<std::int64_t>(*path)) return item(value, *path, heap);
  const std::string dot = ".", &text = text_of(*path, "the attribute");
  for (const std::string& name : split(text, &dot, -1, false)) {
    const bool is_index = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    if (name.find(',') != std::string::npos || (is_index && name.size() > 9))
      throw Fault("the attribute '" + text + "' is not supported");
    value = item(value, is_index ? Value(std::int64_t{std::stoi(name)}) : heap.text(name), heap);
  }
  return value;
}

Value title(const Value& value, const Arguments& arguments, Heap& heap) {
  for (std::size_t i = 0; text_in(value) && i < text_in(value)->size(); ++i) heap.step();
  arguments.bind({});
  return heap.text(titled(str(value, heap)));  // jinja2's result is not marked safe
}

Value trim(const Value& value, const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"chars"});
  const bool has_set = bound[0] != nullptr && !as<None>(*bound[0]);
  std::string text = stripped(str(value, heap), Side::both, has_set ? &text_of(*bound[0], "chars") : nullptr);
  return marked_like(value, heap.text(std::move(text)), heap);
}

Value string(const Value& value, Heap& heap) { return text_in(value) ? value : heap.text(str(value, heap)); }

Value safe(const Value& value, Heap& heap) { return marked_like(SafeText{}, string(value, heap), heap); }

Value format(const Value& value, const Arguments& arguments, Heap& heap) {
  if (!arguments.named.empty()) throw Fault("arguments with a name are not supported");
  return percent_formatted(string(value, heap), heap.list(arguments.positional, ListKind::tuple), heap);
}

Value replace(const Value& value, const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"old", "new", "count"}, 2);
  return heap.text(replaced(str(value, heap), text_of(*bound[0], "the first argument"),
                            text_of(*bound[1], "the second argument"),
                            bound[2] && !as<None>(*bound[2]) ? integer_of(*bound[2], "count") : -1, heap));
}

Value indent(const Value& value, const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"width", "first", "blank"});
  std::string margin(4, ' ');
  if (bound[0]) {
    const auto* text = as<Text>(*bound[0]);
    const std::int64_t width = text ? 0 : std::max<std::int64_t>(integer_of(*bound[0], "width"), 0);
    if (!text) heap.spend(static_cast<std::size_t>(width));
    margin = text ? **text : std::string(static_cast<std::size_t>(width), ' ');
  }
  const auto lines = split_lines(text_of(value, "the value") + "\n");
  std::string result = flag(bound[1]) ? margin : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool is_indented = i > 0 && (flag(bound[2]) || !lines[i].empty());
    heap.spend(margin.size() + lines[i].size());
    result += (i > 0 ? "\n" : "") + (is_indented ? margin : "") + lines[i];
  }
  return marked_like(value, heap.text(std::move(result)), heap);
}

Value default_value(const Value& value, const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"default_value", "boolean"});
  const bool replaces = is_undefined(value) || (flag(bound[1]) && !is_true(value));
  if (!replaces) return value;
  return bound[0] ? *bound[0] : heap.text("");
}

Value length_of(const Value& value, Heap&) { return static_cast<std::int64_t>(length(value)); }

Value first(const Value& value, Heap& heap) {
  const std::vector<Value> entries = items_of(value, heap);
  return entries.empty() ? Value(Undefined{"the first item of an empty list"}) : entries.front();
}

void require_reversible(const Value& value) {
  const List* list = list_in(value);
  if (list != nullptr && list->kind == ListKind::generator)
    throw Fault("a generator has no end; add '| list'");
}

Value last(const Value& value, Heap& heap) {
  require_reversible(value);
  const std::vector<Value> entries = items_of(value, heap);
  return entries.empty() ? Value(Undefined{"the last item of an empty list"})
                         : marked_like(value, entries.back(), heap);
}

Value reverse(const Value& value, Heap& heap) {
  if (text_in(value)) return slice(value, None{}, None{}, std::int64_t{-1}, heap);
  require_reversible(value);
  const std::vector<Value> entries = items_of(value, heap);
  return heap.list({entries.rbegin(), entries.rend()}, ListKind::generator);
}

Value list(const Value& value, Heap& heap) { return heap.list(items_of(value, heap)); }

Value join(const Value& value, const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"d", "attribute"});
  std::string result, separator;
  for (const Value& entry : items_of(value, heap)) {
    const std::string text = str(part_of(entry, bound[1], heap), heap);
    heap.spend(text.size() + separator.size());
    (result += separator) += text;
    if (bound[0]) separator = str(*bound[0], heap);
  }
  return heap.text(std::move(result));
}

Value items(const Value& value, Heap& heap) {
  std::vector<Value> pairs;
  const Dict* dict = dict_in(value);
  if (dict == nullptr && !is_undefined(value))
    throw Fault("the value is " + type_name(value) + ": expected a mapping");
  for (std::size_t i = 0; dict && i < dict->entries.size(); ++i)
    pairs.push_back(heap.list({dict->entries[i].first, dict->entries[i].second}, ListKind::tuple));
  return heap.list(std::move(pairs), ListKind::generator);
}

struct Keyed {
  Value key, value;
};

Value sorted(std::vector<Keyed> entries, bool reversed, Heap& heap) {
  std::ranges::stable_sort(entries, [&](const Keyed& a, const Keyed& b) {
    heap.step();
    return reversed ? compare(b.key, a.key, heap) < 0 : compare(a.key, b.key, heap) < 0;
  });
  std::vector<Value> values;
  for (Keyed& entry : entries) values.push_back(std::move(entry.value));
  return heap.list(std::move(values));
}

Value dictsort(const Value& value, const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"case_sensitive", "by", "reverse"});
  const std::string by = bound[1] ? text_of(*bound[1], "by") : "key";
  if (by != "key" && by != "value") throw Fault("by is '" + by + "': expected key or value");
  const Value pairs = items(value, heap);
  std::vector<Keyed> entries;
  for (const Value& pair : list_in(pairs)->items)
    entries.push_back({folded(list_in(pair)->items[by == "key" ? 0 : 1], flag(bound[0]), heap), pair});
  return sorted(std::move(entries), flag(bound[2]), heap);
}

Value sort(const Value& value, const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"reverse", "case_sensitive", "attribute"});
  std::vector<Keyed> entries;
  for (const Value& entry : items_of(value, heap))
    entries.push_back({folded(part_of(entry, bound[2], heap), flag(bound[1]), heap), entry});
  return sorted(std::move(entries), flag(bound[0]), heap);
}

Value unique(const Value& value, const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"case_sensitive", "attribute"});
  std::vector<Value> keys, kept;
  for (const Value& entry : items_of(value, heap)) {
    Value key = folded(part_of(entry, bound[1], heap), flag(bound[0]), heap);
    if (std::ranges::any_of(keys, [&](const Value& known) { return equal(known, key, heap); })) continue;
    keys.push_back(std::move(key));
    kept.push_back(entry);
  }
  return heap.list(std::move(kept), ListKind::generator);
}

template <int kSign> Value extreme(const Value& value, const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"case_sensitive", "attribute"});
  Value best = Undefined{"the extreme of an empty list"}, best_key;
  for (const Value& entry : items_of(value, heap)) {
    Value key = folded(part_of(entry, bound[1], heap), flag(bound[0]), heap);
    if (!is_undefined(best) && kSign * compare(key, best_key, heap) <= 0) continue;
    best = entry;
    best_key = std::move(key);
  }
  return best;
}

// jinja2 checks the arguments of map, select and similar filters only if there are items.
Value nothing(Heap& heap) { return heap.list({}, ListKind::generator); }

Value map(const Value& value, const Arguments& arguments, Heap& heap) {
  if (!is_true(value)) return nothing(heap);
  std::vector<Value> results;
  const std::vector<Value> entries = items_of(value, heap);
  if (arguments.positional.empty()) {
    const auto bound = arguments.bind({"", "attribute", "default"});
    if (bound[1] == nullptr) throw Fault("lacks the name of a filter or an attribute");
    for (const Value& entry : entries) {
      Value part = part_of(entry, bound[1], heap);
      results.push_back(is_undefined(part) && bound[2] ? *bound[2] : std::move(part));
    }
  } else {
    Arguments rest = arguments;
    rest.positional.erase(rest.positional.begin());
    const std::string& name = text_of(arguments.positional[0], "the filter");
    for (const Value& entry : entries) results.push_back(apply_filter(name, entry, rest, heap));
  }
  return heap.list(std::move(results), ListKind::generator);
}

// select, reject, selectattr and rejectattr.
template <bool kKeeps, bool kByAttribute>
Value selected(const Value& value, const Arguments& arguments, Heap& heap) {
  if (!is_true(value)) return nothing(heap);
  Arguments rest = arguments;
  const auto take = [&rest] {
    if (rest.positional.empty()) throw Fault("lacks an argument");
    Value taken = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
    return taken;
  };
  Value path = None{};
  if (kByAttribute) path = take();
  std::string test;
  if (!rest.positional.empty()) test = text_of(take(), "the test");
  std::vector<Value> kept;
  for (const Value& entry : items_of(value, heap)) {
    const Value part = part_of(entry, &path, heap);
    const bool fits = test.empty() ? is_true(part) : apply_test(test, part, rest, heap);
    if (fits == kKeeps) kept.push_back(entry);
  }
  return heap.list(std::move(kept), ListKind::generator);
}

// Parses a number as Python's int() or float() does; false if it is none.
template <class Number> bool read_number(std::string text, Number& number) {
  text = stripped(text, Side::both);
  const auto is_digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '_' && (i == 0 || !is_digit(i - 1) || !is_digit(i + 1))) return false;
  std::erase(text, '_');
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.erase(0, 1);
  if (std::ranges::any_of(text, [](unsigned char c) { return c > 0x7F; }))
    throw Fault("the number '" + text + "' is not ASCII");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) throw Fault("the number '" + text + "' is too large");
  return error == std::errc() && end == text.data() + text.size();
}

Value to_float(const Value& value, const Arguments& arguments, Heap&) {
  const auto bound = arguments.bind({"default"});
  double number = 0;
  if (is_number(value)) return number_of(value);
  if (const auto* undefined = as<Undefined>(value)) throw Fault(undefined->what + " is undefined");
  const std::string* text = text_in(value);
  // C++ also accepts "nan(1)".
  if (text && text->find('(') == std::string::npos && read_number(*text, number)) return number;
  return bound[0] ? *bound[0] : Value(0.0);
}

Value to_int(const Value& value, const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"default"});
  std::int64_t integer = 0;
  if (is_integral(value)) return integer_of(value, "");
  if (const std::string* text = text_in(value); text && read_number(*text, integer)) return integer;
  const Value none = to_float(value, {{None{}}, {}}, heap);
  const double* number = as<double>(none);
  if (number == nullptr || std::isnan(*number) || (std::isinf(*number) && text_in(value)))
    return bound[0] ? *bound[0] : Value(std::int64_t{0});
  if (std::abs(*number) >= 9.2e18) throw Fault("the number " + float_text(*number) + " is too large");
  return static_cast<std::int64_t>(*number);
}

Value absolute(const Value& value, Heap&) {
  if (const auto* number = as<double>(value)) return std::abs(*number);
  const std::int64_t integer = integer_of(value, "the value");
  if (integer == INT64_MIN) throw Fault("an integer is too large");
  return std::abs(integer);
}

Value tojson(const Value& value, const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = flag(bound[0]);
  style.sort_keys = flag(bound[3]);
  style.is_indented = bound[1] && !as<None>(*bound[1]);
  if (style.is_indented) {
    const std::string* text = text_in(*bound[1]);
    const std::int64_t width = text ? 0 : std::max<std::int64_t>(integer_of(*bound[1], "indent"), 0);
    if (width > 1000) throw Fault("indent is too large");
    style.indent = text ? *text : std::string(static_cast<std::size_t>(width), ' ');
  }
  style.between_items = style.is_indented ? "," : ", ";
  style.after_key = ": ";
  if (bound[2] && !as<None>(*bound[2])) {
    const std::vector<Value> parts = items_of(*bound[2], heap);
    if (parts.size() != 2)
      throw Fault("separators has " + std::to_string(parts.size()) + " parts: expected 2");
    style.between_items = text_of(parts[0], "the separator of items");
    style.after_key = text_of(parts[1], "the separator of keys");
  }
  return heap.text(json_dumps(value, style, heap));
}

const std::map<std::string_view, Filter> kFilters = {
    {"abs", plain<absolute>},
    {"capitalize", plain<changed<capitalized>>},
    {"count", plain<length_of>},
    {"d", default_value},
    {"default", default_value},
    {"dictsort", dictsort},
    {"first", plain<first>},
    {"float", to_float},
    {"format", format},
    {"indent", indent},
    {"int", to_int},
    {"items", plain<items>},
    {"join", join},
    {"last", plain<last>},
    {"length", plain<length_of>},
    {"list", plain<list>},
    {"lower", plain<changed<to_lower>>},
    {"map", map},
    {"max", extreme<1>},
    {"min", extreme<-1>},
    {"reject", selected<false, false>},
    {"rejectattr", selected<false, true>},
    {"replace", replace},
    {"reverse", plain<reverse>},
    {"safe", plain<safe>},
    {"select", selected<true, false>},
    {"selectattr", selected<true, true>},
    {"sort", sort},
    {"string", plain<string>},
    {"title", title},
    {"tojson", tojson},
    {"trim", trim},
    {"unique", unique},
    {"upper", plain<changed<to_upper>>},
};

}  // namespace

Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments, Heap& heap) {
  const auto found = kFilters.find(name);
  if (found == kFilters.end()) throw Fault("filter '" + std::string(name) + "' is not supported");
  try {
    heap.step();
    heap.read(value);
    for (const Value& argument : arguments.positional) heap.read(argument);
    return found->second(value, arguments, heap);
  } catch (const Fault& fault) {
    throw Fault("filter '" + std::string(name) + "': " + fault.what());
  }
}

}  // namespace zoo::chat
