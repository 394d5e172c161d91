#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/jinja/value.h"

namespace zoo::chat {

/// The arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  /// The argument of each parameter, nullptr if none is given. Throws Fault for an argument without a
  /// parameter, and if fewer than `required` parameters have one.
  std::vector<const Value*> bind(std::initializer_list<const char*> parameters,
                                 std::size_t required = 0) const;
};

/// A filter or method without arguments.
template <Value (*kApply)(const Value&, Heap&)>
Value plain(const Value& value, const Arguments& arguments, Heap& heap) {
  arguments.bind({});
  return kApply(value, heap);
}

/// The filters and tests of jinja2 and transformers. Throw Fault for one that the zoo lacks.
Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments, Heap& heap);
bool apply_test(std::string_view name, const Value& value, const Arguments& arguments, Heap& heap);

/// The functions of the environment, such as range and raise_exception.
bool is_function(std::string_view name);
Value call_function(std::string_view name, const Arguments& arguments, Heap& heap);

/// The method of the object; nothing if Python has none. Throws Fault for one that the zoo lacks.
std::optional<std::string_view> method_of(const Value& object, std::string_view name);

Value call_method(const Method& method, const Arguments& arguments, Heap& heap);

}  // namespace zoo::chat
