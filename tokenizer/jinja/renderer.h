#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/jinja/calls.h"
#include "tokenizer/jinja/python_text.h"
#include "tokenizer/jinja/syntax.h"
#include "tokenizer/text/utf8.h"

namespace zoo::chat {

/// Renders a template once. Throws Fault; line() is then the line of its cause.
class Renderer {
 public:
  /// `strict`: using a value that is not there is a Fault, as with jinja2's StrictUndefined.
  Renderer(Heap& heap, std::vector<std::pair<std::string, Value>> variables, bool strict = false)
      : heap_(heap), globals_{nullptr, {std::move(variables)}}, strict_(strict) {}

  std::string render(const Statements& body) {
    Frame frame{&globals_, {}};
    run(body, frame);
    return std::move(output_);
  }

  /// The bytes of the text that blocks `generation` have printed; none of those inside macros and set blocks.
  const std::vector<ByteRange>& generated() const { return generated_; }
  int line() const { return line_; }

 private:
  // Variables of a loop's iteration, a macro's call or the template; the parent's are also visible.
  struct Frame {
    const Frame* parent;
    Namespace variables;
  };
  enum class Flow { normal, leave_loop, next_iteration };

  // Counts nested statements, expressions and macros: a macro may call itself.
  Nesting nest() {
    constexpr int kDeepest = 800;
    heap_.step();
    if (depth_ >= kDeepest) throw Fault("macros are nested too deeply");
    return Nesting(depth_);
  }

  Flow run(const Statements& body, Frame& frame) {
    for (const Statement& statement : body) {
      const Flow flow = run(statement, frame);
      if (flow != Flow::normal) return flow;
    }
    return Flow::normal;
  }

  Flow run(const Statement& statement, Frame& frame) {
    const Nesting level = nest();
    line_ = statement.line;
    switch (statement.kind) {
      case Statement::Kind::text: print(statement.text); break;
      case Statement::Kind::output: print(str(evaluate(*statement.expression, frame), heap_)); break;
      case Statement::Kind::set:
        assign(statement.targets, evaluate(*statement.expression, frame), frame);
        break;
      case Statement::Kind::set_block: assign(statement.targets, filtered(statement, frame), frame); break;
      case Statement::Kind::filter_block: print(text_of(filtered(statement, frame), "the block")); break;
      case Statement::Kind::condition:
        return run(is_true(evaluate(*statement.expression, frame)) ? statement.body : statement.otherwise,
                   frame);
      case Statement::Kind::loop: return run_loop(statement, frame);
      case Statement::Kind::macro: frame.variables.set(statement.macro->name, statement.macro.get()); break;
      case Statement::Kind::generation: print_generated(statement.body, frame); break;
      case Statement::Kind::leave_loop: return Flow::leave_loop;
      case Statement::Kind::next_iteration: return Flow::next_iteration;
    }
    return Flow::normal;
  }

  Flow run_loop(const Statement& statement, Frame& frame) {
    std::vector<Value> items = items_of(evaluate(*statement.expression, frame), heap_);
    if (statement.filter) {
      std::vector<Value> kept;
      for (const Value& item : items) {
        Frame inner{&frame, {}};
        assign(statement.targets, item, inner);
        if (is_true(evaluate(*statement.filter, inner))) kept.push_back(item);
      }
      items = std::move(kept);
    }
    if (items.empty()) {
      Frame inner{&frame, {}};
      return run(statement.otherwise, inner);
    }
    const auto shared = std::make_shared<const List>(List{items});
    for (std::size_t i = 0; i < items.size(); ++i) {
      heap_.step();
      Frame inner{&frame, {}};
      inner.variables.set("loop", std::make_shared<const Loop>(Loop{shared, i}));
      assign(statement.targets, items[i], inner);
      if (run(statement.body, inner) == Flow::leave_loop) break;
    }
    return Flow::normal;
  }

  void print_generated(const Statements& body, Frame& frame) {
    const auto begin = static_cast<std::uint32_t>(output_.size());
    print(str(captured(body, frame), heap_));
    const auto end = static_cast<std::uint32_t>(output_.size());
    if (captures_ == 0 && end > begin) generated_.push_back({begin, end});
  }

  // The text that the statements print.
  Value captured(const Statements& body, Frame& frame) {
    std::string outside = std::exchange(output_, {});
    Frame inner{&frame, {}};
    const Nesting capture(captures_);
    run(body, inner);
    return heap_.text(std::exchange(output_, std::move(outside)));
  }

  // The same after the block's filters.
  Value filtered(const Statement& statement, Frame& frame) {
    Value text = captured(statement.body, frame);
    if (!statement.expression) return text;
    line_ = statement.line;
    Frame inner{&frame, {}};
    inner.variables.set(kBlockText, std::move(text));
    return evaluate(*statement.expression, inner);
  }

  void print(const std::string& text) {
    heap_.spend(text.size());
    output_ += text;
  }

  void assign(const std::vector<Target>& targets, const Value& value, Frame& frame) {
    if (targets.size() > 1) {
      const std::vector<Value> parts = items_of(value, heap_);
      if (parts.size() != targets.size())
        throw Fault(std::to_string(targets.size()) + " variables are set to " + std::to_string(parts.size()) +
                    " values");
      for (std::size_t i = 0; i < targets.size(); ++i) assign({targets[i]}, parts[i], frame);
      return;
    }
    const Target& target = targets[0];
    heap_.spend(frame.variables.entries.size());
    if (target.attribute.empty()) return frame.variables.set(target.name, value);
    const Value object = variable(target.name, frame);
    const auto* space = as<std::shared_ptr<Namespace>>(object);
    if (space == nullptr)
      throw Fault("'" + target.name + "' is " + type_name(object) +
                  ": only a namespace has attributes to set");
    heap_.spend((*space)->entries.size());
    if (target.attribute.starts_with('_'))
      throw Fault("'" + target.attribute + "' begins with an underscore");
    heap_.list({value});  // refuses a namespace as a value
    (*space)->set(target.attribute, value);
  }

  Value call_macro(const Macro& macro, const Arguments& arguments, const Frame& home) {
    const Nesting level = nest();
    if (arguments.positional.size() > macro.parameters.size())
      throw Fault("macro '" + macro.name + "' takes at most " + std::to_string(macro.parameters.size()) +
                  " arguments");
    heap_.spend(macro.parameters.size() * (macro.parameters.size() + arguments.named.size()));
    Frame frame{&home, {}};
    Namespace& variables = frame.variables;
    for (std::size_t i = 0; i < arguments.positional.size(); ++i)
      variables.set(macro.parameters[i].name, arguments.positional[i]);
    for (const auto& [name, value] : arguments.named) {
      const bool is_known = std::ranges::count(macro.parameters, name, &Macro::Parameter::name) > 0;
      if (!is_known || variables.find(name))
        throw Fault("macro '" + macro.name + "' has no argument '" + name + "' left");
      variables.set(name, value);
    }
    for (const Macro::Parameter& parameter : macro.parameters) {
      if (variables.find(parameter.name)) continue;
      variables.set(parameter.name, parameter.if_absent ? evaluate(*parameter.if_absent, frame)
                                                        : Value(Undefined{"'" + parameter.name + "'"}));
    }
    return captured(macro.body, frame);
  }

  Value evaluate(const Expression& expression, const Frame& frame) {
    return defined(evaluate_or_undefined(expression, frame));
  }

  Value defined(Value value) const {
    if (strict_ && is_undefined(value)) throw Fault(std::get<Undefined>(value).what + " is undefined");
    return value;
  }

  Value evaluate_or_undefined(const Expression& expression, const Frame& frame) {
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
      case Kind::sign:
      case Kind::arithmetic: return arithmetic_value(expression, frame);
    }
    return Undefined{};
  }

  // Undefined if there is no such variable.
  Value variable(const std::string& name, const Frame& frame) {
    for (const Frame* place = &frame; place != nullptr; place = place->parent) {
      heap_.spend(place->variables.entries.size());
      if (const Value* found = place->variables.find(name)) return *found;
    }
    if (is_function(name)) return Function{name};
    return Undefined{"'" + name + "'"};
  }

  Value arithmetic_value(const Expression& expression, const Frame& frame) {
    const Value left = evaluate(*expression.parts[0], frame);
    if (expression.kind == Expression::Kind::arithmetic)
      return chat::arithmetic(expression.name, left, evaluate(*expression.parts[1], frame), heap_);
    if (!is_number(left)) throw Fault(type_name(left) + " has no sign");
    if (expression.name == "+") return chat::arithmetic("+", left, std::int64_t{0}, heap_);
    if (const auto* number = as<double>(left)) return -*number;
    return chat::arithmetic("-", std::int64_t{0}, left, heap_);
  }

  Value dict_value(const Expression& expression, const Frame& frame) {
    Dict dict;
    for (std::size_t i = 0; i < expression.parts.size(); i += 2) {
      const Value key = evaluate(*expression.parts[i], frame);
      dict.set(key, evaluate(*expression.parts[i + 1], frame), heap_);
    }
    return heap_.dict(std::move(dict));
  }

  Value concatenated(const Expression& expression, const Frame& frame) {
    std::string text;
    std::size_t size = 0;
    for (const ExpressionPtr& part : expression.parts) {
      text += str(evaluate(*part, frame), heap_);
      heap_.spend(text.size() - size);
      size = text.size();
    }
    return heap_.text(std::move(text));
  }

  bool compares(const Expression& expression, const Frame& frame) {
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

  bool passes_test(const Expression& expression, const Frame& frame) {
    const Expression& operand = *expression.parts[0];
    Value value = operand.kind == Expression::Kind::name ? variable(operand.name, frame)
                                                         : evaluate_or_undefined(operand, frame);
    if (!expression.name.ends_with("defined")) value = defined(std::move(value));
    return apply_test(expression.name, value, arguments_of(expression, frame), heap_);
  }

  std::vector<Value> values_of(const Expression& expression, const Frame& frame, std::size_t first) {
    std::vector<Value> values;
    for (std::size_t i = first; i < expression.parts.size(); ++i)
      values.push_back(evaluate(*expression.parts[i], frame));
    return values;
  }

  Arguments arguments_of(const Expression& expression, const Frame& frame) {
    Arguments arguments{values_of(expression, frame, 1), {}};
    for (const auto& [name, value] : expression.named)
      arguments.named.emplace_back(name, evaluate(*value, frame));
    return arguments;
  }

  Value call(const Expression& expression, const Frame& frame) {
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

  Heap& heap_;
  Frame globals_;
  bool strict_;
  std::string output_;
  std::vector<ByteRange> generated_;
  int captures_ = 0;  // how many captured() run
  int line_ = 1, depth_ = 0;
};

}  // namespace zoo::chat
