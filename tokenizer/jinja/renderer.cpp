#include "tokenizer/jinja/renderer.h"

#include <algorithm>

#include "tokenizer/jinja/python_text.h"

namespace zoo::chat {

Nesting Renderer::nest() {
  constexpr int kDeepest = 800;
  heap_.step();
  if (depth_ >= kDeepest) throw Fault("macros are nested too deeply");
  return Nesting(depth_);
}

std::string Renderer::render(const Statements& body) {
  Frame frame{&globals_, {}};
  run(body, frame);
  return std::move(output_);
}

Renderer::Flow Renderer::run(const Statements& body, Frame& frame) {
  for (const Statement& statement : body) {
    const Flow flow = run(statement, frame);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Renderer::Flow Renderer::run(const Statement& statement, Frame& frame) {
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

Renderer::Flow Renderer::run_loop(const Statement& statement, Frame& frame) {
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

void Renderer::print_generated(const Statements& body, Frame& frame) {
  const auto begin = static_cast<std::uint32_t>(output_.size());
  print(str(captured(body, frame), heap_));
  const auto end = static_cast<std::uint32_t>(output_.size());
  if (captures_ == 0 && end > begin) generated_.push_back({begin, end});
}

Value Renderer::captured(const Statements& body, Frame& frame) {
  std::string outside = std::exchange(output_, {});
  Frame inner{&frame, {}};
  const Nesting capture(captures_);
  run(body, inner);
  return heap_.text(std::exchange(output_, std::move(outside)));
}

Value Renderer::filtered(const Statement& statement, Frame& frame) {
  Value text = captured(statement.body, frame);
  if (!statement.expression) return text;
  line_ = statement.line;
  Frame inner{&frame, {}};
  inner.variables.set(kBlockText, std::move(text));
  return evaluate(*statement.expression, inner);
}

void Renderer::print(const std::string& text) {
  heap_.spend(text.size());
  output_ += text;
}

void Renderer::assign(const std::vector<Target>& targets, const Value& value, Frame& frame) {
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
    throw Fault("'" + target.name + "' is " + type_name(object) + ": only a namespace has attributes to set");
  heap_.spend((*space)->entries.size());
  if (target.attribute.starts_with('_')) throw Fault("'" + target.attribute + "' begins with an underscore");
  heap_.list({value});  // refuses a namespace as a value
  (*space)->set(target.attribute, value);
}

Value Renderer::call_macro(const Macro& macro, const Arguments& arguments, const Frame& home) {
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

}  // namespace zoo::chat
