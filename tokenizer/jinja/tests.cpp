#include <algorithm>
#include <functional>

#include "tokenizer/jinja/calls.h"

namespace zoo::chat {
namespace {

struct NamedTest {
  std::vector<std::string_view> names;
  bool (*test)(const Value&, const Value&, Heap&);
  bool has_operand = false;
};

bool is_boolean(const Value& value, bool expected) {
  const auto* flag = as<bool>(value);
  return flag != nullptr && *flag == expected;
}

bool is_iterable(const Value& value) {
  return text_in(value) || list_in(value) || dict_in(value) || is_undefined(value);
}

bool is_sequence(const Value& value) {
  const List* list = list_in(value);
  return list != nullptr ? list->kind <= ListKind::range : is_iterable(value);
}

std::int64_t remainder(const Value& value, std::int64_t divisor) {
  if (divisor == 0) throw Fault("division by zero");
  return divisor == -1 ? 0 : integer_of(value, "the value") % divisor;
}

bool unequal(const Value& a, const Value& b, Heap& heap) { return !equal(a, b, heap); }

template <class Holds> bool ordered(const Value& a, const Value& b, Heap& heap) {
  return Holds()(compare(a, b, heap), 0);
}

const std::vector<NamedTest>& tests() {
  using V = const Value&;
  static const std::vector<NamedTest> kTests = {
      {{"eq", "equalto", "=="}, equal, true},
      {{"ne", "!="}, unequal, true},
      {{"lt", "lessthan", "<"}, ordered<std::less<>>, true},
      {{"le", "<="}, ordered<std::less_equal<>>, true},
      {{"gt", "greaterthan", ">"}, ordered<std::greater<>>, true},
      {{"ge", ">="}, ordered<std::greater_equal<>>, true},
      {{"defined"}, [](V value, V, Heap&) { return !is_undefined(value); }},
      {{"undefined"}, [](V value, V, Heap&) { return is_undefined(value); }},
      {{"none"}, [](V value, V, Heap&) { return as<None>(value) != nullptr; }},
      {{"boolean"}, [](V value, V, Heap&) { return as<bool>(value) != nullptr; }},
      {{"true"}, [](V value, V, Heap&) { return is_boolean(value, true); }},
      {{"false"}, [](V value, V, Heap&) { return is_boolean(value, false); }},
      {{"number"}, [](V value, V, Heap&) { return is_number(value); }},
      {{"integer"}, [](V value, V, Heap&) { return as<std::int64_t>(value) != nullptr; }},
      {{"float"}, [](V value, V, Heap&) { return as<double>(value) != nullptr; }},
      {{"string"}, [](V value, V, Heap&) { return text_in(value) != nullptr; }},
      {{"mapping"}, [](V value, V, Heap&) { return dict_in(value) != nullptr; }},
      {{"iterable"}, [](V value, V, Heap&) { return is_iterable(value); }},
      {{"sequence"}, [](V value, V, Heap&) { return is_sequence(value); }},
      {{"odd"}, [](V value, V, Heap&) { return remainder(value, 2) != 0; }},
      {{"even"}, [](V value, V, Heap&) { return remainder(value, 2) == 0; }},
      {{"divisibleby"},
       [](V value, V by, Heap&) { return remainder(value, integer_of(by, "the divisor")) == 0; },
       true},
      {{"in"}, [](V value, V container, Heap& heap) { return contains(container, value, heap); }, true},
  };
  return kTests;
}

}  // namespace

bool apply_test(std::string_view name, const Value& value, const Arguments& arguments, Heap& heap) {
  const auto found = std::ranges::find_if(
      tests(), [&](const NamedTest& test) { return std::ranges::count(test.names, name) > 0; });
  if (found == tests().end()) throw Fault("test '" + std::string(name) + "' is not supported");
  try {
    const Value none = None{};
    const auto bound = found->has_operand ? arguments.bind({"other"}, 1) : arguments.bind({});
    return found->test(value, bound.empty() ? none : *bound[0], heap);
  } catch (const Fault& fault) {
    throw Fault("test '" + std::string(name) + "': " + fault.what());
  }
}

}  // namespace zoo::chat
