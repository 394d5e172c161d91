#include <algorithm>

#include "tokenizer/jinja/parser.h"

namespace zoo::chat {
namespace {

using Kind = Statement::Kind;

class StatementParser {
 public:
  StatementParser(std::string_view source, TagSpace space)
      : tokens_(tokenize(source, space)), parser_(tokens_) {}

  Statements run() { return statements({}); }

 private:
  // Parses up to a tag with one of the names, which is then the current token; without names, to the end.
  Statements statements(std::initializer_list<const char*> ends) {
    const Nesting nesting = parser_.nest();
    Statements body;
    for (;;) {
      const Token& token = parser_.current();
      if (token.kind == TokenKind::end) {
        if (ends.size() == 0) return body;
        parser_.fail("the template ends before '" + std::string(*ends.begin()) + "'");
      }
      parser_.next();
      if (token.kind == TokenKind::text) {
        body.push_back({.kind = Kind::text, .line = token.line, .text = token.text});
      } else if (token.kind == TokenKind::output_begin) {
        body.push_back(output(token.line));
      } else {
        const bool ends_here =
            std::ranges::any_of(ends, [&](const char* end) { return parser_.sees_name(end); });
        if (ends_here) return body;
        body.push_back(tag());
        expect_end(TokenKind::tag_end);
      }
    }
  }

  void expect_end(TokenKind kind) {
    if (!parser_.sees(kind))
      parser_.fail("unexpected '" + parser_.current().text + "' before the end of the tag");
    parser_.next();
  }

  // The body after a tag, up to `end`; consumes the name of `end`.
  Statements body_until(const char* end) {
    expect_end(TokenKind::tag_end);
    Statements body = statements({end});
    parser_.next();
    return body;
  }

  Statement output(int line) {
    ExpressionPtr value = parser_.tuple();
    expect_end(TokenKind::output_end);
    return {.kind = Kind::output, .line = line, .expression = std::move(value)};
  }

  Statement tag() {
    const int line = parser_.current().line;
    const std::string name = parser_.expect_name();
    if (name == "if") return condition(line);
    if (name == "for") return loop(line);
    if (name == "set") return set(line);
    if (name == "macro") return macro(line);
    if (name == "generation")
      return {.kind = Kind::generation, .line = line, .body = outside_of_loops("endgeneration")};
    if (name == "filter")
      return {.kind = Kind::filter_block,
              .line = line,
              .expression = parser_.block_filters(),
              .body = outside_of_loops("endfilter")};
    if (name != "break" && name != "continue") throw SyntaxFault{line, "tag '" + name + "' is not supported"};
    if (loops_ == 0) throw SyntaxFault{line, "'" + name + "' is outside of a loop"};
    return {.kind = name == "break" ? Kind::leave_loop : Kind::next_iteration, .line = line};
  }

  Statement condition(int line) {
    const Nesting nesting = parser_.nest();
    Statement found{.kind = Kind::condition, .line = line, .expression = parser_.tuple(false)};
    expect_end(TokenKind::tag_end);
    found.body = statements({"endif", "elif", "else"});
    const std::string end = parser_.next().text;
    if (end == "elif") found.otherwise.push_back(condition(parser_.current().line));
    if (end == "else") found.otherwise = body_until("endif");
    return found;
  }

  Statement loop(int line) {
    Statement found{.kind = Kind::loop, .line = line, .targets = targets("in")};
    for (const Target& target : found.targets)
      if (!target.attribute.empty()) parser_.fail("a loop cannot assign to an attribute");
    if (!parser_.skip_name("in")) parser_.fail("'for' lacks 'in'");
    found.expression = parser_.tuple(false);
    if (parser_.skip_name("if")) found.filter = parser_.tuple();
    if (parser_.sees_name("recursive")) parser_.fail("'recursive' is not supported");
    expect_end(TokenKind::tag_end);
    ++loops_;
    found.body = statements({"endfor", "else"});
    --loops_;
    if (parser_.next().text == "else") found.otherwise = body_until("endfor");
    return found;
  }

  std::vector<Target> targets(std::string_view end) {
    std::vector<Target> found;
    const bool in_brackets = parser_.skip("(");
    do {
      if (!found.empty() && (parser_.sees_name(end) || parser_.sees(TokenKind::symbol, end))) break;
      const std::string name = parser_.expect_name();
      found.push_back({name, parser_.skip(".") ? parser_.expect_name() : ""});
    } while (parser_.skip(","));
    if (in_brackets) parser_.expect(")");
    return found;
  }

  Statement set(int line) {
    Statement found{.kind = Kind::set, .line = line, .targets = targets("=")};
    if (parser_.skip("=")) {
      found.expression = parser_.tuple();
      return found;
    }
    if (parser_.skip("|")) found.expression = parser_.block_filters();
    found.kind = Kind::set_block;
    found.body = outside_of_loops("endset");
    return found;
  }

  Statement macro(int line) {
    auto found = std::make_shared<Macro>();
    found->name = parser_.expect_name();
    parser_.expect("(");
    while (!parser_.skip(")")) {
      const std::string name = parser_.expect_name();
      found->parameters.push_back({name, parser_.skip("=") ? parser_.expression() : nullptr});
      if (!parser_.sees(TokenKind::symbol, ")")) parser_.expect(",");
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

  const std::vector<Token> tokens_;
  ExpressionParser parser_;
  int loops_ = 0;
};

}  // namespace

Statements parse(std::string_view source, TagSpace space) { return StatementParser(source, space).run(); }

}  // namespace zoo::chat
