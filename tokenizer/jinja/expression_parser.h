#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>

#include "tokenizer/jinja/lexer.h"
#include "tokenizer/jinja/syntax.h"

namespace zoo::chat {

/// Reads expressions from tokens.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& next() { return tokens_[at_++]; }

  bool sees(TokenKind kind, std::string_view text = "") const {
    return current().kind == kind && (text.empty() || current().text == text);
  }
  bool sees_name(std::string_view name) const { return sees(TokenKind::name, name); }

  bool skip(std::string_view symbol) { return skip(TokenKind::symbol, symbol); }
  bool skip_name(std::string_view name) { return skip(TokenKind::name, name); }

  void expect(std::string_view symbol) {
    if (!skip(symbol)) fail("unexpected " + shown(current()) + ": expected '" + std::string(symbol) + "'");
  }

  std::string expect_name() {
    if (!sees(TokenKind::name)) fail("unexpected " + shown(current()) + ": expected a name");
    return next().text;
  }

  [[noreturn]] void fail(const std::string& what) const { throw SyntaxFault{current().line, what}; }

  ExpressionPtr expression() {
    const Nesting nesting = nest();
    ExpressionPtr value = disjunction();
    while (sees_name("if")) {
      const int line = next().line;
      std::vector<ExpressionPtr> parts = list_of(disjunction(), std::move(value));
      if (skip_name("else")) parts.push_back(expression());
      value = node(Kind::conditional, line, "", std::move(parts));
    }
    return value;
  }

  /// Without "a if b else c", as after the `in` of a loop.
  ExpressionPtr disjunction() {
    return chain(Kind::disjunction, {"or"}, [this] { return conjunction(); });
  }

  /// Expressions separated by commas: a tuple.
  ExpressionPtr tuple(bool with_conditional = true) {
    const int line = current().line;
    const auto one = [&] { return with_conditional ? expression() : disjunction(); };
    std::vector<ExpressionPtr> parts = list_of(one());
    bool is_tuple = false;
    while (skip(",")) {
      is_tuple = true;
      const TokenKind kind = current().kind;
      if (kind == TokenKind::tag_end || kind == TokenKind::output_end || sees(TokenKind::symbol, ")")) break;
      parts.push_back(one());
    }
    return is_tuple ? node(Kind::tuple, line, "", std::move(parts)) : std::move(parts[0]);
  }

  /// The filters of a block, "upper | trim", on the variable kBlockText.
  ExpressionPtr block_filters() {
    ExpressionPtr text = node(Kind::name, current().line, kBlockText, {});
    do text = filter(std::move(text));
    while (skip("|"));
    return text;
  }

  /// Counts nested statements and expressions.
  Nesting nest() {
    if (nesting_ >= kDeepest) fail("statements and expressions are nested too deeply");
    return Nesting(nesting_);
  }

 private:
  using Kind = Expression::Kind;

  // Deeper expressions would overflow the stack when they are parsed, evaluated or destroyed.
  static constexpr int kDeepest = 200;

  static std::vector<ExpressionPtr> list_of(ExpressionPtr a, ExpressionPtr b = nullptr) {
    std::vector<ExpressionPtr> parts;
    parts.push_back(std::move(a));
    if (b) parts.push_back(std::move(b));
    return parts;
  }

  static std::string shown(const Token& token) {
    switch (token.kind) {
      case TokenKind::output_end: return "'}}'";
      case TokenKind::tag_end: return "'%}'";
      case TokenKind::string: return "a string";
      case TokenKind::end: return "the end";
      default: return "'" + token.text + "'";
    }
  }

  bool skip(TokenKind kind, std::string_view text) {
    if (!sees(kind, text)) return false;
    ++at_;
    return true;
  }

  ExpressionPtr finish(Expression expression) const {
    const auto count = [&](const ExpressionPtr& part) {
      if (part) expression.depth = std::max(expression.depth, part->depth + 1);
    };
    for (const ExpressionPtr& part : expression.parts) count(part);
    for (const auto& [name, part] : expression.named) count(part);
    if (expression.depth > kDeepest) fail("an expression is nested too deeply");
    return std::make_unique<const Expression>(std::move(expression));
  }

  ExpressionPtr node(Kind kind, int line, std::string name, std::vector<ExpressionPtr> parts) const {
    return finish({kind, line, std::move(name), {}, std::move(parts)});
  }

  // Operands with operators of one precedence between them, from the left.
  template <class Operand>
  ExpressionPtr chain(Kind kind, std::initializer_list<std::string_view> operators, Operand operand) {
    ExpressionPtr left = operand();
    while ((current().kind == TokenKind::symbol || current().kind == TokenKind::name) &&
           std::ranges::count(operators, current().text) > 0) {
      const Token& sign = next();
      left = node(kind, sign.line, sign.text, list_of(std::move(left), operand()));
    }
    return left;
  }

  ExpressionPtr conjunction() {
    return chain(Kind::conjunction, {"and"}, [this] { return negation(); });
  }

  ExpressionPtr negation() {
    if (!sees_name("not")) return comparison();
    const Nesting nesting = nest();
    const int line = next().line;
    return node(Kind::negation, line, "", list_of(negation()));
  }

  ExpressionPtr comparison() {
    Expression found{Kind::comparison, current().line, "", {}, list_of(sum())};
    for (;;) {
      constexpr std::array kOperators = {"==", "!=", "<", "<=", ">", ">="};
      const bool is_operator =
          current().kind == TokenKind::symbol && std::ranges::count(kOperators, current().text) > 0;
      if (is_operator || sees_name("in")) {
        found.operators.push_back(next().text);
      } else if (sees_name("not") && tokens_[at_ + 1].kind == TokenKind::name &&
                 tokens_[at_ + 1].text == "in") {
        at_ += 2;
        found.operators.push_back("not in");
      } else {
        break;
      }
      found.parts.push_back(sum());
    }
    return found.operators.empty() ? std::move(found.parts[0]) : finish(std::move(found));
  }

  ExpressionPtr sum() {
    return chain(Kind::arithmetic, {"+", "-"}, [this] { return concat(); });
  }

  ExpressionPtr concat() {
    const int line = current().line;
    std::vector<ExpressionPtr> parts = list_of(product());
    while (skip("~")) parts.push_back(product());
    return parts.size() == 1 ? std::move(parts[0]) : node(Kind::concat, line, "", std::move(parts));
  }

  ExpressionPtr product() {
    return chain(Kind::arithmetic, {"*", "/", "//", "%"}, [this] { return power(); });
  }

  ExpressionPtr power() {
    return chain(Kind::arithmetic, {"**"}, [this] { return unary(); });
  }

  ExpressionPtr unary(bool with_filters = true) {
    const Nesting nesting = nest();
    const int line = current().line;
    ExpressionPtr value;
    if (sees(TokenKind::symbol, "-") || sees(TokenKind::symbol, "+")) {
      std::string sign = next().text;
      value = node(Kind::sign, line, std::move(sign), list_of(unary(false)));
    } else {
      value = primary();
    }
    value = postfix(std::move(value));
    return with_filters ? filters(std::move(value)) : std::move(value);
  }

  ExpressionPtr primary() {
    const Token& token = current();
    if (token.kind == TokenKind::string) return string();
    if (token.kind == TokenKind::integer || token.kind == TokenKind::real) return number();
    if (token.kind == TokenKind::name) {
      ++at_;
      Expression found{Kind::constant, token.line, token.text};
      if (token.text == "true" || token.text == "True") {
        found.value = true;
      } else if (token.text == "false" || token.text == "False") {
        found.value = false;
      } else if (token.text == "none" || token.text == "None") {
        found.value = None{};
      } else {
        constexpr std::array kSpecial = {"caller", "kwargs", "self", "super", "varargs"};
        if (std::ranges::count(kSpecial, token.text) > 0)
          throw SyntaxFault{token.line, "the name '" + token.text + "' is not supported"};
        found.kind = Kind::name;
      }
      return finish(std::move(found));
    }
    if (skip("(")) {
      if (skip(")")) return node(Kind::tuple, token.line, "", {});
      ExpressionPtr inside = tuple();
      expect(")");
      return inside;
    }
    if (skip("[")) return list();
    if (skip("{")) return dict();
    fail("unexpected " + shown(token));
  }

  ExpressionPtr string() {
    const int line = current().line;
    std::string text;
    while (sees(TokenKind::string)) text += next().text;
    return finish({Kind::constant, line, "", std::make_shared<const std::string>(std::move(text))});
  }

  ExpressionPtr number() {
    const Token& token = next();
    const char *begin = token.text.data(), *end = begin + token.text.size();
    std::int64_t integer = 0;
    double real = 0;
    const bool is_integer = token.kind == TokenKind::integer;
    const std::errc error =
        is_integer ? std::from_chars(begin, end, integer).ec : std::from_chars(begin, end, real).ec;
    if (error != std::errc()) fail("the number " + token.text + " is too large");
    return finish({Kind::constant, token.line, "", is_integer ? Value(integer) : Value(real)});
  }

  ExpressionPtr list() {
    const int line = current().line;
    std::vector<ExpressionPtr> parts;
    while (!skip("]")) {
      parts.push_back(expression());
      if (!sees(TokenKind::symbol, "]")) expect(",");
    }
    return node(Kind::list, line, "", std::move(parts));
  }

  ExpressionPtr dict() {
    const int line = current().line;
    std::vector<ExpressionPtr> parts;
    while (!skip("}")) {
      parts.push_back(expression());
      expect(":");
      parts.push_back(expression());
      if (!sees(TokenKind::symbol, "}")) expect(",");
    }
    return node(Kind::dict, line, "", std::move(parts));
  }

  ExpressionPtr postfix(ExpressionPtr object) {
    for (;;) {
      const int line = current().line;
      if (skip(".")) {
        if (sees(TokenKind::integer)) {
          object = node(Kind::item, line, "", list_of(std::move(object), number()));
          continue;
        }
        std::string name = expect_name();
        if (name.starts_with("__")) fail("the attribute '" + name + "' is not allowed");
        object = node(Kind::attribute, line, std::move(name), list_of(std::move(object)));
      } else if (skip("[")) {
        object = subscript(std::move(object));
      } else if (sees(TokenKind::symbol, "(")) {
        object = call(std::move(object));
      } else {
        return object;
      }
    }
  }

  ExpressionPtr subscript(ExpressionPtr object) {
    const int line = current().line;
    std::vector<ExpressionPtr> parts = list_of(std::move(object));
    const auto none = [&] { return finish({Kind::constant, line, "", None{}}); };
    const auto bound = [&] {
      return sees(TokenKind::symbol, ":") || sees(TokenKind::symbol, "]") ? none() : expression();
    };
    if (!sees(TokenKind::symbol, ":")) parts.push_back(expression());
    const bool is_slice = sees(TokenKind::symbol, ":");
    if (is_slice) {
      if (parts.size() == 1) parts.push_back(none());
      expect(":");
      parts.push_back(bound());
      parts.push_back(skip(":") ? bound() : none());
    }
    expect("]");
    return node(is_slice ? Kind::slice : Kind::item, line, "", std::move(parts));
  }

  void arguments(Expression& expression) {
    expect("(");
    while (!skip(")")) {
      if (sees(TokenKind::symbol, "*") || sees(TokenKind::symbol, "**"))
        fail("arguments that are unpacked with '" + current().text + "' are not supported");
      if (sees(TokenKind::name) && tokens_[at_ + 1].kind == TokenKind::symbol &&
          tokens_[at_ + 1].text == "=") {
        std::string name = next().text;
        expect("=");
        expression.named.emplace_back(std::move(name), this->expression());
      } else {
        if (!expression.named.empty()) fail("an argument without a name stands after one with a name");
        expression.parts.push_back(this->expression());
      }
      if (!sees(TokenKind::symbol, ")")) expect(",");
    }
  }

  ExpressionPtr call(ExpressionPtr function) {
    const int line = current().line;
    if (function->kind != Kind::name && function->kind != Kind::attribute)
      fail("only a name or a method can be called");
    Expression found{Kind::call, line, "", {}, list_of(std::move(function))};
    arguments(found);
    return finish(std::move(found));
  }

  ExpressionPtr filters(ExpressionPtr value) {
    for (;;) {
      if (skip("|")) {
        value = filter(std::move(value));
      } else if (sees_name("is")) {
        value = test(std::move(value));
      } else if (sees(TokenKind::symbol, "(")) {
        value = call(std::move(value));
      } else {
        return value;
      }
    }
  }

  ExpressionPtr filter(ExpressionPtr value) {
    const int line = current().line;
    std::string name = expect_name();
    Expression found{Kind::filter, line, std::move(name), {}, list_of(std::move(value))};
    if (sees(TokenKind::symbol, "(")) arguments(found);
    return finish(std::move(found));
  }

  ExpressionPtr test(ExpressionPtr value) {
    const int line = next().line;
    const bool negated = skip_name("not");
    std::string name = expect_name();
    Expression found{Kind::test, line, std::move(name), {}, list_of(std::move(value))};
    constexpr std::array kAfter = {"else", "or", "and"};
    const TokenKind kind = current().kind;
    if (sees(TokenKind::symbol, "(")) {
      arguments(found);
    } else if (kind == TokenKind::string || kind == TokenKind::integer || kind == TokenKind::real ||
               sees(TokenKind::symbol, "[") || sees(TokenKind::symbol, "{") ||
               (kind == TokenKind::name && std::ranges::count(kAfter, current().text) == 0)) {
      if (sees_name("is")) fail("tests cannot be chained with 'is'");
      found.parts.push_back(postfix(primary()));
    }
    ExpressionPtr result = finish(std::move(found));
    return negated ? node(Kind::negation, line, "", list_of(std::move(result))) : std::move(result);
  }

  const std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace zoo::chat
