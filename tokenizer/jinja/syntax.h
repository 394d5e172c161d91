#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/jinja/value.h"

namespace zoo::chat {

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

/// A node of an expression. `parts` are its operands in the order of the text.
struct Expression {
  enum class Kind {
    constant,     // value
    name,         // name
    list,         // parts
    tuple,        // parts
    dict,         // parts: key, value, key, value, …
    attribute,    // parts[0].name
    item,         // parts[0][parts[1]]
    slice,        // parts[0][parts[1]:parts[2]:parts[3]]
    call,         // parts[0](parts[1], …, named)
    filter,       // parts[0] | name(parts[1], …, named)
    test,         // parts[0] is name(parts[1], …, named)
    sign,         // name parts[0]
    negation,     // not parts[0]
    conjunction,  // parts[0] and parts[1]
    disjunction,  // parts[0] or parts[1]
    arithmetic,   // parts[0] name parts[1]
    comparison,   // parts[0] operators[0] parts[1] operators[1] parts[2] …
    concat,       // parts[0] ~ parts[1] ~ …
    conditional,  // parts[1] if parts[0] else parts[2]
  };

  Kind kind;
  int line;
  std::string name;
  Value value;
  std::vector<ExpressionPtr> parts;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  std::vector<std::string> operators;
  int depth = 1;
};

struct Statement;
using Statements = std::vector<Statement>;

struct Macro {
  struct Parameter {
    std::string name;
    ExpressionPtr if_absent;  // null: undefined
  };

  std::string name;
  std::vector<Parameter> parameters;
  Statements body;
};

/// The variable of a block's text for its filters; no template can name it.
constexpr const char* kBlockText = "";

/// The target of an assignment: a variable, or an attribute of a namespace.
struct Target {
  std::string name, attribute;
};

struct Statement {
  enum class Kind {
    text,
    output,
    set,
    set_block,
    condition,
    loop,
    macro,
    generation,
    filter_block,
    leave_loop,
    next_iteration
  };

  Kind kind;
  int line;
  std::string text;
  std::vector<Target> targets;  // several unpack the value
  ExpressionPtr expression;     // output, set, condition; the items of a loop; the filters of a block
  ExpressionPtr filter;         // loop: only items for which it is true
  Statements body, otherwise;   // otherwise: else and elif, or the else of a loop without items
  std::shared_ptr<const Macro> macro;
};

/// Parses a template; `trims` as for tokenize(). Throws SyntaxFault for anything outside the subset.
Statements parse(std::string_view source, bool trims);

}  // namespace zoo::chat
