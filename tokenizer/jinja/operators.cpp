#include <algorithm>
#include <cmath>

#include "tokenizer/jinja/calls.h"
#include "tokenizer/jinja/python_text.h"
#include "tokenizer/jinja/value.h"
#include "tokenizer/text/utf8.h"

namespace zoo::chat {
namespace {

[[noreturn]] void overflow() { throw Fault("an integer is too large"); }

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) overflow();
    if (result == 0 || result == 1) break;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  }
  return result;
}

Value integer_arithmetic(std::string_view operation, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (operation == "+") {
    if (__builtin_add_overflow(a, b, &result)) overflow();
  } else if (operation == "-") {
    if (__builtin_sub_overflow(a, b, &result)) overflow();
  } else if (operation == "*") {
    if (__builtin_mul_overflow(a, b, &result)) overflow();
  } else if (operation == "**") {
    if (b < 0) return std::pow(static_cast<double>(a), static_cast<double>(b));
    result = power(a, b);
  } else {
    if (b == 0) throw Fault("division by zero");
    if (operation == "/") return static_cast<double>(a) / static_cast<double>(b);
    if (b == -1 && operation == "%") return std::int64_t{0};
    if (b == -1 && a == INT64_MIN) overflow();
    // Python rounds towards minus infinity, C++ towards zero.
    const std::int64_t adjust = a % b != 0 && (a < 0) != (b < 0) ? 1 : 0;
    result = operation == "//" ? a / b - adjust : a % b + adjust * b;
  }
  return result;
}

Value float_arithmetic(std::string_view operation, double a, double b) {
  if (operation == "+") return a + b;
  if (operation == "-") return a - b;
  if (operation == "*") return a * b;
  if (operation == "**") return std::pow(a, b);
  if (b == 0) throw Fault("division by zero");
  if (operation == "/") return a / b;
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  if (operation == "%") return remainder;
  return std::floor((a - remainder) / b + 0.5);
}

Value repeated(const Value& value, std::int64_t count, Heap& heap) {
  count = std::max<std::int64_t>(count, 0);
  const std::string* text = text_in(value);
  const List* list = list_in(value);
  const std::size_t size = text ? text->size() : list->items.size() * sizeof(Value);
  if (size != 0 && static_cast<std::uint64_t>(count) > (std::uint64_t{1} << 40) / size) overflow();
  heap.spend(size * static_cast<std::size_t>(count));
  std::string texts;
  std::vector<Value> items;
  for (std::int64_t i = 0; size != 0 && i < count; ++i) {
    if (text) texts += *text;
    if (list) items.insert(items.end(), list->items.begin(), list->items.end());
  }
  return text ? marked_like(value, heap.text(std::move(texts)), heap)
              : heap.list(std::move(items), list->kind);
}

bool is_list_or_tuple(const Value& value) {
  const List* list = list_in(value);
  return list != nullptr && list->kind <= ListKind::tuple;
}

Value added(const Value& a, const Value& b, Heap& heap) {
  std::vector<Value> items = list_in(a)->items;
  items.insert(items.end(), list_in(b)->items.begin(), list_in(b)->items.end());
  return heap.list(std::move(items), list_in(a)->kind);
}

// The item at a Python index; negative ones count from the end.
template <class Items> const auto* at(const Items& items, std::int64_t index) {
  const auto size = static_cast<std::int64_t>(items.size());
  if (index < 0) index += size;
  return index < 0 || index >= size ? nullptr : &items[static_cast<std::size_t>(index)];
}

// The indices that Python's slice visits.
std::vector<std::size_t> slice_indices(std::int64_t size, const Value& from, const Value& to,
                                       const Value& step) {
  const std::int64_t stride = as<None>(step) ? 1 : integer_of(step, "the step of a slice");
  if (stride == 0) throw Fault("the step of a slice is 0");
  const std::int64_t low = stride < 0 ? -1 : 0, high = stride < 0 ? size - 1 : size;
  const auto bound = [&](const Value& value, std::int64_t if_none) {
    if (as<None>(value)) return if_none;
    const std::int64_t index = integer_of(value, "the bound of a slice");
    return std::clamp(index < 0 ? index + size : index, low, high);
  };
  const std::int64_t begin = bound(from, stride < 0 ? high : low), end = bound(to, stride < 0 ? low : high);
  std::vector<std::size_t> indices;
  for (std::int64_t i = begin; stride < 0 ? i > end : i < end;) {
    indices.push_back(static_cast<std::size_t>(i));
    if (__builtin_add_overflow(i, stride, &i)) break;
  }
  return indices;
}

Value undefined_attribute(const Value& object, const std::string& name) {
  return Undefined{"'" + name + "' of " + type_name(object)};
}

Value loop_attribute(const Loop& loop, const std::string& name) {
  const auto& items = loop.items->items;
  const auto index = static_cast<std::int64_t>(loop.index), size = static_cast<std::int64_t>(items.size());
  if (name == "index") return index + 1;
  if (name == "index0") return index;
  if (name == "revindex") return size - index;
  if (name == "revindex0") return size - index - 1;
  if (name == "length") return size;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 == size;
  // Only recursive loops, which the parser refuses, are nested deeper.
  if (name == "depth") return std::int64_t{1};
  if (name == "depth0") return std::int64_t{0};
  if (name == "previtem") return index == 0 ? Value(Undefined{"loop.previtem"}) : items[loop.index - 1];
  if (name == "nextitem")
    return index + 1 == size ? Value(Undefined{"loop.nextitem"}) : items[loop.index + 1];
  throw Fault("loop." + name + " is not supported");
}

}  // namespace

Value attribute(const Value& object, const std::string& name, Heap& heap) {
  if (const auto* undefined = as<Undefined>(object))
    throw Fault(undefined->what + " is undefined, so it has no '" + name + "'");
  if (const auto* loop = as<std::shared_ptr<const Loop>>(object)) return loop_attribute(**loop, name);
  if (const auto* space = as<std::shared_ptr<Namespace>>(object)) {
    heap.spend((*space)->entries.size());
    const Value* found = (*space)->find(name);
    return found ? *found : undefined_attribute(object, name);
  }
  // jinja2's sandbox refuses Python's internal attributes.
  if (name.starts_with("__")) throw Fault("the attribute '" + name + "' is not allowed");
  if (const auto method = method_of(object, name)) {
    heap.step();
    return std::make_shared<const Method>(Method{object, *method});
  }
  const Dict* dict = dict_in(object);
  const Value* found = dict ? dict->find(name, heap) : nullptr;
  return found ? *found : undefined_attribute(object, name);
}

Value item(const Value& object, const Value& key, Heap& heap) {
  if (const auto* undefined = as<Undefined>(object))
    throw Fault(undefined->what + " is undefined, so it has no items");
  const Dict* dict = dict_in(object);
  if (const Value* found = dict ? dict->find_key(key, heap) : nullptr) return *found;
  if (const std::string* name = text_in(key)) return attribute(object, *name, heap);
  const auto missing = [&] { return undefined_attribute(object, "an item"); };
  if (!as<std::int64_t>(key) && !as<bool>(key)) return missing();
  const std::int64_t index = integer_of(key, "");
  if (const std::string* text = text_in(object)) {
    heap.read(object);
    const std::u32string characters = characters_of(*text);
    const char32_t* found = at(characters, index);
    return found == nullptr ? missing() : marked_like(object, heap.text(utf8_of(*found)), heap);
  }
  const List* list = list_in(object);
  if (list == nullptr || list->kind > ListKind::range) return missing();
  const Value* found = at(list->items, index);
  return found == nullptr ? missing() : *found;
}

Value slice(const Value& object, const Value& from, const Value& to, const Value& step, Heap& heap) {
  if (const auto* undefined = as<Undefined>(object))
    throw Fault(undefined->what + " is undefined, so it has no slice");
  if (const std::string* text = text_in(object)) {
    heap.read(object);
    const std::u32string characters = characters_of(*text);
    std::u32string kept;
    for (const std::size_t i : slice_indices(static_cast<std::int64_t>(characters.size()), from, to, step))
      kept.push_back(characters[i]);
    return marked_like(object, heap.text(utf8_of(kept)), heap);
  }
  const List* list = list_in(object);
  if (list == nullptr || list->kind > ListKind::tuple) throw Fault(type_name(object) + " has no slices");
  std::vector<Value> kept;
  for (const std::size_t i : slice_indices(static_cast<std::int64_t>(list->items.size()), from, to, step))
    kept.push_back(list->items[i]);
  return heap.list(std::move(kept), list->kind);
}

Value arithmetic(std::string_view operation, const Value& a, const Value& b, Heap& heap) {
  if (is_integral(a) && is_integral(b))
    return integer_arithmetic(operation, integer_of(a, ""), integer_of(b, ""));
  if (is_number(a) && is_number(b)) return float_arithmetic(operation, number_of(a), number_of(b));
  if (operation == "+" && text_in(a) && text_in(b)) {
    heap.spend(text_in(a)->size() + text_in(b)->size());
    const Value& safe = as<SafeText>(a) ? a : b;
    if (as<SafeText>(safe)) return marked_like(safe, heap.text(escaped(a, heap) + escaped(b, heap)), heap);
    return heap.text(*text_in(a) + *text_in(b));
  }
  if (operation == "%" && text_in(a)) return percent_formatted(a, b, heap);
  if (operation == "+" && is_list_or_tuple(a) && is_list_or_tuple(b) && list_in(a)->kind == list_in(b)->kind)
    return added(a, b, heap);
  if (operation == "*" && is_integral(b) && (text_in(a) || is_list_or_tuple(a)))
    return repeated(a, integer_of(b, ""), heap);
  if (operation == "*" && is_integral(a) && (text_in(b) || is_list_or_tuple(b)))
    return repeated(b, integer_of(a, ""), heap);
  for (const Value* operand : {&a, &b}) {
    if (const auto* undefined = as<Undefined>(*operand))
      throw Fault(undefined->what + " is undefined, so it has no '" + std::string(operation) + "'");
  }
  throw Fault(type_name(a) + " " + std::string(operation) + " " + type_name(b) + " is not supported");
}

}  // namespace zoo::chat
