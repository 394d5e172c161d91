#include <algorithm>

#include "tokenizer/jinja/expression_parser.h"

namespace zoo::chat {
namespace {

class StatementParser : ExpressionParser {
 public:
  StatementParser(std::string_view source, bool trims) : ExpressionParser(tokenize(source, trims)) {}

  Statements run() { return statements({}); }

 private:
  using Kind = Statement::Kind;

  // Parses up to a tag with one of the names, which is then the current token; without names, to the end.
  Statements statements(std::initializer_list<const char*> ends) {
    const Nesting nesting = nest();
    Statements body;
    for (;;) {
      const Token& token = current();
      if (token.kind == TokenKind::end) {
        if (ends.size() == 0) return body;
        fail("the template ends before '" + std::string(*ends.begin()) + "'");
      }
      next();
      if (token.kind == TokenKind::text) {
        body.push_back({.kind = Kind::text, .line = token.line, .text = token.text});
      } else if (token.kind == TokenKind::output_begin) {
        body.push_back(output(token.line));
      } else {
        const bool ends_here = std::ranges::any_of(ends, [&](const char* end) { return sees_name(end); });
        if (ends_here) return body;
        body.push_back(tag());
        expect_end(TokenKind::tag_end);
      }
    }
  }

  void expect_end(TokenKind kind) {
    if (!sees(kind)) fail("unexpected '" + current().text + "' before the end of the tag");
    next();
  }

  // The body after a tag, up to `end`; consumes the name of `end`.
  Statements body_until(const char* end) {
    expect_end(TokenKind::tag_end);
    Statements body = statements({end});
    next();
    return body;
  }

  Statement output(int line) {
    ExpressionPtr value = tuple();
    expect_end(TokenKind::output_end);
    return {.kind = Kind::output, .line = line, .expression = std::move(value)};
  }

  Statement tag() {
    const int line = current().line;
    const std::string name = expect_name();
    if (name == "if") return condition(line);
    if (name == "for") return loop(line);
    if (name == "set") return set(line);
    if (name == "macro") return macro(line);
    if (name == "generation")
      return {.kind = Kind::generation, .line = line, .body = outside_of_loops("endgeneration")};
    if (name == "filter")
      return {.kind = Kind::filter_block,
              .line = line,
              .expression = block_filters(),
              .body = outside_of_loops("endfilter")};
    if (name != "break" && name != "continue") throw SyntaxFault{line, "tag '" + name + "' is not supported"};
    if (loops_ == 0) throw SyntaxFault{line, "'" + name + "' is outside of a loop"};
    return {.kind = name == "break" ? Kind::leave_loop : Kind::next_iteration, .line = line};
  }

  Statement condition(int line) {
    const Nesting nesting = nest();
    Statement found{.kind = Kind::condition, .line = line, .expression = tuple(false)};
    expect_end(TokenKind::tag_end);
    found.body = statements({"endif", "elif", "else"});
    const std::string end = next().text;
    if (end == "elif") found.otherwise.push_back(condition(current().line));
    if (end == "else") found.otherwise = body_until("endif");
    return found;
  }

  Statement loop(int line) {
    Statement found{.kind = Kind::loop, .line = line, .targets = targets("in")};
    for (const Target& target : found.targets)
      if (!target.attribute.empty()) fail("a loop cannot assign to an attribute");
    if (!skip_name("in")) fail("'for' lacks 'in'");
    found.expression = tuple(false);
    if (skip_name("if")) found.filter = tuple();
    if (sees_name("recursive")) fail("'recursive' is not supported");
    expect_end(TokenKind::tag_end);
    ++loops_;
    found.body = statements({"endfor", "else"});
    --loops_;
    if (next().text == "else") found.otherwise = body_until("endfor");
    return found;
  }

  std::vector<Target> targets(std::string_view end) {
    std::vector<Target> found;
    const bool in_brackets = skip("(");
    do {
      if (!found.empty() && (sees_name(end) || sees(TokenKind::symbol, end))) break;
      const std::string name = expect_name();
      found.push_back({name, skip(".") ? expect_name() : ""});
    } while (skip(","));
    if (in_brackets) expect(")");
    return found;
  }

  Statement set(int line) {
    Statement found{.kind = Kind::set, .line = line, .targets = targets("=")};
    if (skip("=")) {
      found.expression = tuple();
      return found;
    }
    if (skip("|")) found.expression = block_filters();
    found.kind = Kind::set_block;
    found.body = outside_of_loops("endset");
    return found;
  }

  Statement macro(int line) {
    auto found = std::make_shared<Macro>();
    found->name = expect_name();
    expect("(");
    while (!skip(")")) {
      const std::string name = expect_name();
      found->parameters.push_back({name, skip("=") ? expression() : nullptr});
      if (!sees(TokenKind::symbol, ")")) expect(",");
    }
    found->body = outside_of_loops("endmacro");
    return {.kind = Kind::macro, .line = line, .macro = std::move(found)};
  }

  // break and continue do not apply across a macro or a block.
  Statements outside_of_loops(const char* end) {
    const int loops = std::exchange(loops_, 0);
    Statements body = body_until(end);
    loops_ = loops;
    return body;
  }

  int loops_ = 0;
};

}  // namespace

Statements parse(std::string_view source, bool trims) { return StatementParser(source, trims).run(); }

}  // namespace zoo::chat
