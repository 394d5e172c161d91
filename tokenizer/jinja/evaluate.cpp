#include <algorithm>
#include <array>
#include <ctime>

#include "tokenizer/jinja/calls.h"
#include "tokenizer/jinja/python_text.h"
#include "tokenizer/jinja/renderer.h"

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

}  // namespace

Value Renderer::evaluate(const Expression& expression, const Frame& frame) {
  return defined(evaluate_or_undefined(expression, frame));
}

Value Renderer::defined(Value value) const {
  if (strict_ && is_undefined(value)) throw Fault(std::get<Undefined>(value).what + " is undefined");
  return value;
}

Value Renderer::evaluate_or_undefined(const Expression& expression, const Frame& frame) {
  const Nesting level = nest();
  const auto& parts = expression.parts;
  const auto part = [&](std::size_t i) { return evaluate(*parts[i], frame); };
  using Kind = Expression::Kind;
  switch (expression.kind) {
    case Kind::constant: return expression.value;
    case Kind::name: {
      Value value = variable(expression.name, frame);
      // A stored macro could outlive the variables that it uses.
      if (as<const Macro*>(value)) throw Fault("macro '" + expression.name + "' is used without a call");
      return value;
    }
    case Kind::list: return heap_.list(values_of(expression, frame, 0));
    case Kind::tuple: return heap_.list(values_of(expression, frame, 0), ListKind::tuple);
    case Kind::dict: return dict_value(expression, frame);
    case Kind::attribute: return attribute(part(0), expression.name, heap_);
    case Kind::item: {
      const Value object = part(0);
      return item(object, part(1), heap_);
    }
    case Kind::slice: {
      const auto values = values_of(expression, frame, 0);
      return slice(values[0], values[1], values[2], values[3], heap_);
    }
    case Kind::call: return call(expression, frame);
    case Kind::filter: {
      const bool defaults = expression.name == "default" || expression.name == "d";
      const Value value = defaults ? evaluate_or_undefined(*parts[0], frame) : part(0);
      return apply_filter(expression.name, value, arguments_of(expression, frame), heap_);
    }
    case Kind::test: return passes_test(expression, frame);
    case Kind::negation: return !is_true(part(0));
    case Kind::conjunction:
    case Kind::disjunction: {
      Value left = part(0);
      return is_true(left) == (expression.kind == Kind::conjunction) ? part(1) : left;
    }
    case Kind::comparison: return compares(expression, frame);
    case Kind::concat: return concatenated(expression, frame);
    case Kind::conditional:
      if (is_true(part(0))) return part(1);
      return parts.size() > 2 ? part(2) : Value(Undefined{"an 'if' without 'else'"});
    case Kind::negative:
    case Kind::positive:
    case Kind::arithmetic: return arithmetic_value(expression, frame);
  }
  return Undefined{};
}

Value Renderer::variable(const std::string& name, const Frame& frame) {
  for (const Frame* place = &frame; place != nullptr; place = place->parent) {
    heap_.spend(place->variables.entries.size());
    if (const Value* found = place->variables.find(name)) return *found;
  }
  if (std::ranges::count(kFunctions, name) > 0) return Function{name};
  return Undefined{"'" + name + "'"};
}

Value Renderer::arithmetic_value(const Expression& expression, const Frame& frame) {
  const Value left = evaluate(*expression.parts[0], frame);
  if (expression.kind == Expression::Kind::arithmetic)
    return chat::arithmetic(expression.name, left, evaluate(*expression.parts[1], frame), heap_);
  if (!is_number(left)) throw Fault(type_name(left) + " has no sign");
  if (expression.kind == Expression::Kind::positive)
    return chat::arithmetic("+", left, std::int64_t{0}, heap_);
  if (const auto* number = as<double>(left)) return -*number;
  return chat::arithmetic("-", std::int64_t{0}, left, heap_);
}

Value Renderer::dict_value(const Expression& expression, const Frame& frame) {
  Dict dict;
  for (std::size_t i = 0; i < expression.parts.size(); i += 2) {
    const Value key = evaluate(*expression.parts[i], frame);
    dict.set(key, evaluate(*expression.parts[i + 1], frame), heap_);
  }
  return heap_.dict(std::move(dict));
}

Value Renderer::concatenated(const Expression& expression, const Frame& frame) {
  std::string text;
  std::size_t size = 0;
  for (const ExpressionPtr& part : expression.parts) {
    text += str(evaluate(*part, frame), heap_);
    heap_.spend(text.size() - size);
    size = text.size();
  }
  return heap_.text(std::move(text));
}

bool Renderer::compares(const Expression& expression, const Frame& frame) {
  Value left = evaluate(*expression.parts[0], frame);
  for (std::size_t i = 0; i < expression.operators.size(); ++i) {
    Value right = evaluate(*expression.parts[i + 1], frame);
    const std::string& sign = expression.operators[i];
    const bool is_negated = sign == "not in";
    const bool holds = apply_test(is_negated ? "in" : sign, left, {{right}, {}}, heap_) != is_negated;
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

bool Renderer::passes_test(const Expression& expression, const Frame& frame) {
  const Expression& operand = *expression.parts[0];
  Value value = operand.kind == Expression::Kind::name ? variable(operand.name, frame)
                                                       : evaluate_or_undefined(operand, frame);
  if (!expression.name.ends_with("defined")) value = defined(std::move(value));
  return apply_test(expression.name, value, arguments_of(expression, frame), heap_);
}

std::vector<Value> Renderer::values_of(const Expression& expression, const Frame& frame, std::size_t first) {
  std::vector<Value> values;
  for (std::size_t i = first; i < expression.parts.size(); ++i)
    values.push_back(evaluate(*expression.parts[i], frame));
  return values;
}

Arguments Renderer::arguments_of(const Expression& expression, const Frame& frame) {
  Arguments arguments{values_of(expression, frame, 1), {}};
  for (const auto& [name, value] : expression.named)
    arguments.named.emplace_back(name, evaluate(*value, frame));
  return arguments;
}

Value Renderer::call(const Expression& expression, const Frame& frame) {
  const Expression& callee = *expression.parts[0];
  if (callee.kind == Expression::Kind::attribute) {
    const Value object = evaluate(*callee.parts[0], frame);
    const Value found = attribute(object, callee.name, heap_);
    const auto* method = as<std::shared_ptr<const Method>>(found);
    if (method == nullptr) throw Fault(type_name(object) + " has no method '" + callee.name + "'");
    return call_method(**method, arguments_of(expression, frame), heap_);
  }
  const Frame* home = &frame;
  while (home->parent != nullptr && home->variables.find(callee.name) == nullptr) home = home->parent;
  const Value function = variable(callee.name, frame);
  const Arguments arguments = arguments_of(expression, frame);
  line_ = expression.line;
  if (const auto* macro = as<const Macro*>(function)) return call_macro(**macro, arguments, *home);
  if (const auto* named = as<Function>(function)) return call_function(named->name, arguments, heap_);
  throw Fault("'" + callee.name + "' is " + type_name(function) + ": it cannot be called");
}

}  // namespace zoo::chat
