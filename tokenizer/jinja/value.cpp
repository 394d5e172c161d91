#include "tokenizer/jinja/value.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tokenizer/jinja/python_text.h"
#include "tokenizer/text/utf8.h"

namespace zoo::chat {
namespace {

// Deep values would overflow the stack, and a namespace in a list could hold that list.
int depth_of(const Value& value) {
  constexpr int kDeepest = 600;
  int depth = 0;
  if (const List* list = list_in(value)) depth = list->depth;
  if (const Dict* dict = dict_in(value)) depth = dict->depth;
  if (as<std::shared_ptr<Namespace>>(value)) throw Fault("a namespace cannot be stored in another value");
  if (depth >= kDeepest) throw Fault("lists and mappings are nested too deeply");
  return depth;
}

constexpr std::size_t kComparison = 16;  // units, in addition to the letters of texts

template <class Number> int order(Number a, Number b) { return a < b ? -1 : a > b ? 1 : 0; }

}  // namespace

bool is_number(const Value& value) { return as<bool>(value) || as<std::int64_t>(value) || as<double>(value); }

double number_of(const Value& value) {
  if (const auto* flag = as<bool>(value)) return *flag ? 1 : 0;
  if (const auto* integer = as<std::int64_t>(value)) return static_cast<double>(*integer);
  return std::get<double>(value);
}

bool is_integral(const Value& value) { return as<bool>(value) || as<std::int64_t>(value); }

const Value* Dict::find(std::string_view key, Heap& heap) const {
  for (const auto& [known, value] : entries) {
    const std::string* name = text_in(known);
    heap.spend(1 + (name && name->size() == key.size() ? key.size() : 0));
    if (name && *name == key) return &value;
  }
  return nullptr;
}

const Value* Dict::find_key(const Value& key, Heap& heap) const {
  if (const std::string* text = text_in(key)) return find(*text, heap);
  for (const auto& [known, value] : entries)
    if (equal(known, key, heap)) return &value;
  return nullptr;
}

void Dict::set(const Value& key, Value value, Heap& heap) {
  if (!text_in(key) && !is_number(key) && !as<None>(key))
    throw Fault("a key of a mapping is " + type_name(key) + ": expected a text, a number or none");
  const auto is_key = [&](const auto& entry) { return equal(entry.first, key, heap); };
  const auto known = std::ranges::find_if(entries, is_key);
  if (known == entries.end()) entries.emplace_back(key, std::move(value));
  else known->second = std::move(value);
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [known, value] : entries)
    if (known == name) return &value;
  return nullptr;
}

void Namespace::set(const std::string& name, Value value) {
  const auto known = std::ranges::find(entries, name, &std::pair<std::string, Value>::first);
  if (known == entries.end()) entries.emplace_back(name, std::move(value));
  else known->second = std::move(value);
}

void Heap::spend(std::size_t units) {
  if (units > kBudget - spent_) throw Fault("the template takes too many steps or too much memory");
  spent_ += units;
}

void Heap::read(const Value& value) {
  if (const std::string* text = text_in(value)) spend(text->size());
}

Value Heap::text(std::string text) {
  spend(kText + text.size());
  return std::make_shared<const std::string>(std::move(text));
}

Value Heap::list(std::vector<Value> items, ListKind kind) {
  spend(sizeof(Value) * items.size() + 1);
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, depth_of(item));
  return std::make_shared<const List>(List{std::move(items), kind, depth + 1});
}

Value Heap::dict(Dict dict) {
  for (const auto& [key, value] : dict.entries) {
    spend(2 * sizeof(Value));
    dict.depth = std::max(dict.depth, depth_of(value) + 1);
  }
  return std::make_shared<const Dict>(std::move(dict));
}

Value Heap::from_json(const nlohmann::ordered_json& json) {
  switch (json.type()) {
    case nlohmann::json::value_t::boolean: return json.get<bool>();
    case nlohmann::json::value_t::number_float: return json.get<double>();
    case nlohmann::json::value_t::number_integer: return json.get<std::int64_t>();
    case nlohmann::json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > INT64_MAX) throw Fault("the integer " + json.dump() + " is too large");
      return json.get<std::int64_t>();
    case nlohmann::json::value_t::string: {
      std::string content = json.get<std::string>();
      if (invalid_utf8_at(content)) throw Fault("a text is not UTF-8");
      return text(std::move(content));
    }
    case nlohmann::json::value_t::array: {
      std::vector<Value> items;
      for (const auto& item : json) items.push_back(from_json(item));
      return list(std::move(items));
    }
    case nlohmann::json::value_t::object: {
      Dict found;
      for (const auto& [key, value] : json.items()) found.entries.emplace_back(text(key), from_json(value));
      return dict(std::move(found));
    }
    default: return None{};
  }
}

Value marked_like(const Value& original, Value result, Heap& heap) {
  if (!as<SafeText>(original)) return result;
  if (const auto* text = as<Text>(result)) return SafeText{*text};
  const List* list = list_in(result);
  if (list == nullptr) return result;
  std::vector<Value> items;
  for (const Value& item : list->items) items.push_back(marked_like(original, item, heap));
  return heap.list(std::move(items), list->kind);
}

std::string type_name(const Value& value) {
  constexpr const char* kNames[] = {"undefined", "None",    "a boolean",  "an integer",        "a number",
                                    "a text",    "a list",  "a mapping",  "a namespace",       "a loop",
                                    "a method",  "a macro", "a function", "a text marked safe"};
  return kNames[value.index()];
}

bool is_true(const Value& value) {
  if (is_undefined(value) || as<None>(value)) return false;
  if (is_number(value)) return number_of(value) != 0;
  if (const std::string* text = text_in(value)) return !text->empty();
  if (const List* list = list_in(value)) return list->kind == ListKind::generator || !list->items.empty();
  if (const Dict* dict = dict_in(value)) return !dict->entries.empty();
  return true;
}

bool equal(const Value& a, const Value& b, Heap& heap) {
  heap.spend(kComparison);
  if (is_integral(a) && is_integral(b)) return integer_of(a, "") == integer_of(b, "");
  if (is_number(a) && is_number(b)) return number_of(a) == number_of(b);
  if (text_in(a) && text_in(b)) {
    if (text_in(a)->size() == text_in(b)->size()) heap.read(a);
    return *text_in(a) == *text_in(b);
  }
  if (a.index() != b.index()) return false;
  if (const List* list = list_in(a)) {
    const List* other = list_in(b);
    if (list->kind == ListKind::generator || list->kind == ListKind::view) return list == other;
    return list->kind == other->kind &&
           std::ranges::equal(list->items, other->items, [&](const Value& left, const Value& right) {
             return equal(left, right, heap);
           });
  }
  if (const Dict* dict = dict_in(a)) {
    const Dict* other = dict_in(b);
    return dict->entries.size() == other->entries.size() &&
           std::ranges::all_of(dict->entries, [&](const auto& entry) {
             const Value* match = other->find_key(entry.first, heap);
             return match != nullptr && equal(entry.second, *match, heap);
           });
  }
  return is_undefined(a) || as<None>(a);
}

int compare(const Value& a, const Value& b, Heap& heap) {
  heap.spend(kComparison);
  if (is_integral(a) && is_integral(b)) return order(integer_of(a, ""), integer_of(b, ""));
  if (is_number(a) && is_number(b)) return order(number_of(a), number_of(b));
  if (text_in(a) && text_in(b)) {
    heap.read(text_in(a)->size() < text_in(b)->size() ? a : b);
    return text_in(a)->compare(*text_in(b));
  }
  const List *left = list_in(a), *right = list_in(b);
  if (left == nullptr || right == nullptr || left->kind != right->kind || left->kind > ListKind::tuple)
    throw Fault(type_name(a) + " and " + type_name(b) + " have no order");
  for (std::size_t i = 0; i < std::min(left->items.size(), right->items.size()); ++i)
    if (!equal(left->items[i], right->items[i], heap)) return compare(left->items[i], right->items[i], heap);
  return order(left->items.size(), right->items.size());
}

std::int64_t integer_of(const Value& value, std::string_view what) {
  if (const auto* flag = as<bool>(value)) return *flag ? 1 : 0;
  if (const auto* integer = as<std::int64_t>(value)) return *integer;
  throw Fault(std::string(what) + " is " + type_name(value) + ": expected an integer");
}

const std::string& text_of(const Value& value, std::string_view what) {
  if (const std::string* text = text_in(value)) return *text;
  throw Fault(std::string(what) + " is " + type_name(value) + ": expected a text");
}

std::size_t length(const Value& value) {
  if (is_undefined(value)) return 0;
  if (const std::string* text = text_in(value)) return characters_of(*text).size();
  if (const Dict* dict = dict_in(value)) return dict->entries.size();
  const List* list = list_in(value);
  if (list != nullptr && list->kind != ListKind::generator) return list->items.size();
  throw Fault(type_name(value) + " has no length");
}

std::vector<Value> items_of(const Value& value, Heap& heap) {
  if (const auto* list = as<std::shared_ptr<const List>>(value)) {
    if ((*list)->is_used) throw Fault("a generator is used twice; add '| list' where it is made");
    (*list)->is_used = (*list)->kind == ListKind::generator;
    heap.spend(sizeof(Value) * (*list)->items.size());
    return (*list)->items;
  }
  std::vector<Value> items;
  if (const std::string* text = text_in(value)) {
    for (const char32_t c : characters_of(*text)) items.push_back(heap.text(utf8_of(c)));
  } else if (const Dict* dict = dict_in(value)) {
    heap.spend(sizeof(Value) * dict->entries.size());
    for (const auto& [key, ignored] : dict->entries) items.push_back(key);
  } else if (!is_undefined(value)) {
    throw Fault(type_name(value) + " cannot be looped over");
  }
  return items;
}

bool contains(const Value& container, const Value& value, Heap& heap) {
  if (const std::string* text = text_in(container)) {
    heap.read(container);
    return find_text(*text, text_of(value, "the operand of 'in' beside a text")) != std::string::npos;
  }
  if (const Dict* dict = dict_in(container)) return dict->find_key(value, heap) != nullptr;
  return std::ranges::any_of(items_of(container, heap),
                             [&](const Value& item) { return equal(item, value, heap); });
}

}  // namespace zoo::chat
