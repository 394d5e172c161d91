#include <algorithm>
#include <array>
#include <ctime>

#include "tokenizer/jinja/calls.h"
#include "tokenizer/jinja/python_text.h"

namespace zoo::chat {
namespace {

constexpr std::int64_t kLongestRange = 100000;  // jinja2's

Value range(const Arguments& arguments, Heap& heap) {
  const auto bound = arguments.bind({"start", "stop", "step"}, 1);
  const auto number = [&](std::size_t i, std::int64_t if_absent) {
    return bound[i] ? integer_of(*bound[i], "an argument of range") : if_absent;
  };
  const std::int64_t begin = bound[1] ? number(0, 0) : 0, end = bound[1] ? number(1, 0) : number(0, 0);
  const std::int64_t step = number(2, 1);
  if (step == 0) throw Fault("the step of range is 0");
  std::vector<Value> numbers;
  for (std::int64_t i = begin; step < 0 ? i > end : i < end;) {
    numbers.push_back(i);
    if (numbers.size() > kLongestRange) throw Fault("range has more than 100000 numbers");
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return heap.list(std::move(numbers), ListKind::range);
}

// dict(mapping, name=value, …); namespace() has the same arguments.
Dict entries_of(const Arguments& arguments, Heap& heap) {
  if (arguments.positional.size() > 1) throw Fault("takes at most one argument without a name");
  Dict entries;
  if (!arguments.positional.empty()) {
    const Dict* dict = dict_in(arguments.positional[0]);
    if (dict == nullptr)
      throw Fault("has " + type_name(arguments.positional[0]) + " as argument: expected a mapping");
    entries = *dict;
  }
  for (const auto& [name, value] : arguments.named) entries.set(heap.text(name), value, heap);
  return entries;
}

Value make_namespace(const Arguments& arguments, Heap& heap) {
  const Dict entries = entries_of(arguments, heap);
  Namespace space;
  for (const auto& [key, value] : entries.entries) {
    const std::string& name = text_of(key, "a name");
    if (name.starts_with('_')) throw Fault("'" + name + "' begins with an underscore");
    space.entries.emplace_back(name, value);
  }
  heap.dict(entries);  // refuses a namespace as a value
  return std::make_shared<Namespace>(std::move(space));
}

Value current_time(const Arguments& arguments, Heap& heap) {
  const std::string& format = text_of(*arguments.bind({"format"}, 1)[0], "the format");
  if (format.find("%f") != std::string::npos) throw Fault("microseconds, %f, are not supported");
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 1024> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), format.c_str(), &parts);
  if (size == 0 && !format.empty()) throw Fault("the format is too long");
  return heap.text(std::string(text.data(), size));
}

// The functions of the environment.
constexpr std::array kFunctions = {"raise_exception", "strftime_now", "namespace", "range", "dict"};

}  // namespace

bool is_function(std::string_view name) { return std::ranges::count(kFunctions, name) > 0; }

Value call_function(std::string_view name, const Arguments& arguments, Heap& heap) {
  if (name == "raise_exception")
    throw Fault("the template refuses the conversation: " + str(*arguments.bind({"message"}, 1)[0], heap));
  try {
    if (name == "namespace") return make_namespace(arguments, heap);
    if (name == "range") return range(arguments, heap);
    if (name == "dict") return heap.dict(entries_of(arguments, heap));
    return current_time(arguments, heap);
  } catch (const Fault& fault) {
    throw Fault(std::string(name) + "(): " + fault.what());
  }
}

}  // namespace zoo::chat
