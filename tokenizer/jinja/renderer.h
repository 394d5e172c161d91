#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tokenizer/jinja/calls.h"
#include "tokenizer/jinja/syntax.h"
#include "tokenizer/text/utf8.h"

namespace zoo::chat {

/// Renders a template once. Throws Fault; line() is then the line of its cause.
class Renderer {
 public:
  /// `strict`: using a value that is not there is a Fault, as with jinja2's StrictUndefined.
  Renderer(Heap& heap, std::vector<std::pair<std::string, Value>> variables, bool strict = false)
      : heap_(heap), globals_{nullptr, {std::move(variables)}}, strict_(strict) {}

  std::string render(const Statements& body);
  /// The bytes of the text that blocks `generation` have printed; none of those inside macros and set blocks.
  const std::vector<ByteRange>& generated() const { return generated_; }
  int line() const { return line_; }

 private:
  /// Variables of a loop's iteration, a macro's call or the template; the parent's are also visible.
  struct Frame {
    const Frame* parent;
    Namespace variables;
  };
  enum class Flow { normal, leave_loop, next_iteration };

  /// Counts nested statements, expressions and macros: a macro may call itself.
  Nesting nest();

  Flow run(const Statements& body, Frame& frame);
  Flow run(const Statement& statement, Frame& frame);
  Flow run_loop(const Statement& statement, Frame& frame);
  /// The text that the statements print.
  Value captured(const Statements& body, Frame& frame);
  /// The same after the block's filters.
  Value filtered(const Statement& statement, Frame& frame);
  void print(const std::string& text);
  void print_generated(const Statements& body, Frame& frame);
  void assign(const std::vector<Target>& targets, const Value& value, Frame& frame);

  Value evaluate(const Expression& expression, const Frame& frame);
  Value defined(Value value) const;
  Value evaluate_or_undefined(const Expression& expression, const Frame& frame);
  /// Undefined if there is no such variable.
  Value variable(const std::string& name, const Frame& frame);
  Value arithmetic_value(const Expression& expression, const Frame& frame);
  Value dict_value(const Expression& expression, const Frame& frame);
  Value concatenated(const Expression& expression, const Frame& frame);
  bool compares(const Expression& expression, const Frame& frame);
  bool passes_test(const Expression& expression, const Frame& frame);
  std::vector<Value> values_of(const Expression& expression, const Frame& frame, std::size_t first);
  Arguments arguments_of(const Expression& expression, const Frame& frame);
  Value call(const Expression& expression, const Frame& frame);
  Value call_macro(const Macro& macro, const Arguments& arguments, const Frame& home);

  Heap& heap_;
  Frame globals_;
  bool strict_;
  std::string output_;
  std::vector<ByteRange> generated_;
  int captures_ = 0;  // how many captured() run
  int line_ = 1, depth_ = 0;
};

}  // namespace zoo::chat
