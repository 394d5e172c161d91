#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "tokenizer/jinja/calls.h"
#include "tokenizer/jinja/python_text.h"

namespace zoo::chat {
namespace {

using Call = Value (*)(const Value&, const Arguments&, Heap&);
using Methods = std::map<std::string_view, Call>;

const std::string& self(const Value& object) { return *text_in(object); }

template <Side kSide> Value strip(const Value& object, const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"chars"});
  const bool has_set = bound[0] != nullptr && !as<None>(*bound[0]);
  return heap.text(
      stripped(self(object), kSide, has_set ? &text_of(*bound[0], "the argument of strip") : nullptr));
}

template <bool kFromRight> Value split_text(const Value& object, const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"sep", "maxsplit"});
  const bool has_separator = bound[0] != nullptr && !as<None>(*bound[0]);
  std::vector<Value> parts;
  for (std::string& part : split(self(object), has_separator ? &text_of(*bound[0], "the separator") : nullptr,
                                 bound[1] ? integer_of(*bound[1], "maxsplit") : -1, kFromRight))
    parts.push_back(heap.text(std::move(part)));
  return heap.list(std::move(parts));
}

Value splitlines(const Value& object, Heap& heap) {
  std::vector<Value> lines;
  for (std::string& line : split_lines(self(object))) lines.push_back(heap.text(std::move(line)));
  return heap.list(std::move(lines));
}

// startswith and endswith, with a text or a tuple of texts.
template <bool kAtEnd> Value has_affix(const Value& object, const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"affix"}, 1);
  const auto fits = [&](const Value& affix) {
    const std::string& text =
        text_of(affix, kAtEnd ? "the argument of endswith" : "the argument of startswith");
    heap.read(affix);
    return kAtEnd ? self(object).ends_with(text) : self(object).starts_with(text);
  };
  const List* choices = list_in(*bound[0]);
  if (choices == nullptr || choices->kind != ListKind::tuple) return fits(*bound[0]);
  return std::ranges::any_of(choices->items, fits);
}

template <bool kAtEnd> Value remove_affix(const Value& object, const Arguments& arguments, Heap& heap) {
  const std::string& affix = text_of(*arguments.bind({"affix"}, 1)[0], "the argument");
  const bool fits = kAtEnd ? self(object).ends_with(affix) : self(object).starts_with(affix);
  if (!fits) return object;
  return heap.text(kAtEnd ? self(object).substr(0, self(object).size() - affix.size())
                          : self(object).substr(affix.size()));
}

// A text that the method adds to the object: escaped if the object is marked safe.
std::string added(const Value& object, const Value& text, std::string_view what, Heap& heap) {
  const std::string& plain = text_of(text, what);
  return as<SafeText>(object) ? escaped(text, heap) : plain;
}

Value replace(const Value& object, const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"old", "new", "count"}, 2);
  return heap.text(replaced(self(object), text_of(*bound[0], "the first argument of replace"),
                            added(object, *bound[1], "the second argument of replace", heap),
                            bound[2] ? integer_of(*bound[2], "count") : -1, heap));
}

template <bool kFromRight> Value find(const Value& object, const Arguments& arguments, Heap&) {
  const std::string& part = text_of(*arguments.bind({"sub"}, 1)[0], "the argument of find");
  const std::size_t at = kFromRight ? find_last_text(self(object), part) : find_text(self(object), part);
  if (at == std::string::npos) return std::int64_t{-1};
  return static_cast<std::int64_t>(characters_of(std::string_view(self(object)).substr(0, at)).size());
}

Value count(const Value& object, const Arguments& arguments, Heap&) {
  const std::string& part = text_of(*arguments.bind({"sub"}, 1)[0], "the argument of count");
  if (part.empty()) return static_cast<std::int64_t>(characters_of(self(object)).size() + 1);
  std::int64_t found = 0;
  for (std::size_t at = 0; (at = find_text(self(object), part, at)) != std::string::npos; at += part.size())
    ++found;
  return found;
}

Value join(const Value& object, const Arguments& arguments, Heap& heap) {
  const Value& parts = *arguments.bind({"iterable"}, 1)[0];
  std::string result, separator;
  for (const Value& part : items_of(parts, heap)) {
    const std::string text = added(object, part, "an item of join", heap);
    heap.spend(separator.size() + text.size());
    (result += separator) += text;
    separator = self(object);
  }
  return heap.text(std::move(result));
}

Value title(const Value& object, const Arguments& arguments, Heap& heap) {
  for (std::size_t i = 0; i < self(object).size(); ++i) heap.step();  // letters are changed one by one
  return plain<changed<title_cased>>(object, arguments, heap);
}

template <int (*kFits)(int)> Value all_of(const Value& object, Heap&) {
  const std::string& text = self(object);
  if (std::ranges::any_of(text, [](unsigned char c) { return c > 0x7F; }))
    throw Fault("is not supported for texts outside of ASCII");
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return kFits(c) != 0; });
}

enum class Part { keys, values, items };

template <Part kPart> Value view(const Value& object, Heap& heap) {
  std::vector<Value> parts;
  for (const auto& [key, value] : dict_in(object)->entries) {
    if (kPart == Part::items) parts.push_back(heap.list({key, value}, ListKind::tuple));
    else parts.push_back(kPart == Part::keys ? key : value);
  }
  return heap.list(std::move(parts), ListKind::view);
}

Value get(const Value& object, const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"key", "default"}, 1);
  if (const Value* found = dict_in(object)->find_key(*bound[0], heap)) return *found;
  return bound[1] ? *bound[1] : Value(None{});
}

Value list_index(const Value& object, const Arguments& arguments, Heap& heap) {
  const Value& wanted = *arguments.bind({"value"}, 1)[0];
  const std::vector<Value>& items = list_in(object)->items;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (equal(items[i], wanted, heap)) return static_cast<std::int64_t>(i);
  throw Fault("the list does not hold " + repr(wanted, heap));
}

const Methods kTextMethods = {
    {"strip", strip<Side::both>},
    {"lstrip", strip<Side::left>},
    {"rstrip", strip<Side::right>},
    {"split", split_text<false>},
    {"rsplit", split_text<true>},
    {"splitlines", plain<splitlines>},
    {"startswith", has_affix<false>},
    {"endswith", has_affix<true>},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"replace", replace},
    {"upper", plain<changed<to_upper>>},
    {"lower", plain<changed<to_lower>>},
    {"capitalize", plain<changed<capitalized>>},
    {"title", title},
    {"find", find<false>},
    {"format", brace_formatted},
    {"rfind", find<true>},
    {"count", count},
    {"join", join},
    {"isdigit", plain<all_of<std::isdigit>>},
    {"isspace", plain<all_of<std::isspace>>},
    {"isalpha", plain<all_of<std::isalpha>>},
    {"isalnum", plain<all_of<std::isalnum>>},
};
const Methods kDictMethods = {{"items", plain<view<Part::items>>},
                              {"keys", plain<view<Part::keys>>},
                              {"values", plain<view<Part::values>>},
                              {"get", get}};

const Methods kListMethods = {{"index", list_index}};

const Methods* methods_of(const Value& object) {
  if (text_in(object)) return &kTextMethods;
  if (const List* list = list_in(object)) return list->kind <= ListKind::range ? &kListMethods : nullptr;
  return dict_in(object) ? &kDictMethods : nullptr;
}

// Methods that Python has and the zoo lacks; without this list, they would be undefined.
constexpr std::array kTextLacks = {"casefold",    "center",    "encode",    "expandtabs",   "format_map",
                                   "index",       "isascii",   "isdecimal", "islower",      "isnumeric",
                                   "isprintable", "istitle",   "isupper",   "isidentifier", "ljust",
                                   "maketrans",   "partition", "rindex",    "rjust",        "rpartition",
                                   "swapcase",    "translate", "zfill"};
constexpr std::array kDictLacks = {"clear", "copy", "fromkeys", "pop", "popitem", "setdefault", "update"};
constexpr std::array kListLacks = {"append", "clear",   "copy", "count", "extend", "insert", "pop",
                                   "remove", "reverse", "sort", "start", "stop",   "step",   "mapping"};
constexpr std::array kNumberLacks = {"real",      "imag",     "numerator",  "denominator",      "conjugate",
                                     "hex",       "fromhex",  "is_integer", "as_integer_ratio", "bit_length",
                                     "bit_count", "to_bytes", "from_bytes"};

bool lacks(const Value& object, std::string_view name) {
  if (text_in(object)) return std::ranges::count(kTextLacks, name) > 0;
  if (list_in(object)) return std::ranges::count(kListLacks, name) > 0;
  if (is_number(object)) return std::ranges::count(kNumberLacks, name) > 0;
  return dict_in(object) != nullptr && std::ranges::count(kDictLacks, name) > 0;
}

}  // namespace

std::optional<std::string_view> method_of(const Value& object, std::string_view name) {
  if (lacks(object, name))
    throw Fault("'" + std::string(name) + "' of " + type_name(object) + " is not supported");
  const Methods* methods = methods_of(object);
  if (methods == nullptr) return std::nullopt;
  const auto found = methods->find(name);
  return found == methods->end() ? std::nullopt : std::optional(found->first);
}

Value call_method(const Method& method, const Arguments& arguments, Heap& heap) {
  try {
    heap.read(method.object);
    for (const Value& argument : arguments.positional) heap.read(argument);
    return marked_like(method.object,
                       methods_of(method.object)->at(method.name)(method.object, arguments, heap), heap);
  } catch (const Fault& fault) {
    throw Fault("method '" + std::string(method.name) + "': " + fault.what());
  }
}

std::vector<const Value*> Arguments::bind(std::initializer_list<const char*> parameters,
                                          std::size_t required) const {
  if (positional.size() > parameters.size())
    throw Fault("takes at most " + std::to_string(parameters.size()) + " arguments");
  std::vector<const Value*> bound(parameters.size());
  for (std::size_t i = 0; i < positional.size(); ++i) bound[i] = &positional[i];
  for (const auto& [name, value] : named) {
    const auto found = std::ranges::find(parameters, name);
    if (found == parameters.end()) throw Fault("has no argument '" + name + "'");
    const Value*& slot = bound[static_cast<std::size_t>(found - parameters.begin())];
    if (slot != nullptr) throw Fault("has two values for '" + name + "'");
    slot = &value;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (bound[i] == nullptr) throw Fault("lacks the argument '" + std::string(parameters.begin()[i]) + "'");
  return bound;
}

}  // namespace zoo::chat
