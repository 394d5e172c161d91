#pragma once

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
  bool sees(TokenKind kind, std::string_view text = "") const;
  bool sees_name(std::string_view name) const { return sees(TokenKind::name, name); }
  bool skip(std::string_view symbol);
  bool skip_name(std::string_view name);
  void expect(std::string_view symbol);
  std::string expect_name();
  [[noreturn]] void fail(const std::string& what) const;

  ExpressionPtr expression();
  /// Without "a if b else c", as after the `in` of a loop.
  ExpressionPtr disjunction();
  /// Expressions separated by commas: a tuple.
  ExpressionPtr tuple(bool with_conditional = true);

  /// The filters of a block, "upper | trim", on the variable kBlockText.
  ExpressionPtr block_filters();

  /// Counts nested statements and expressions.
  Nesting nest();

 private:
  using Kind = Expression::Kind;

  ExpressionPtr node(Kind kind, int line, std::string name, std::vector<ExpressionPtr> parts) const;
  ExpressionPtr finish(Expression expression) const;
  template <class Operand>
  ExpressionPtr chain(Kind kind, std::initializer_list<std::string_view> operators, Operand operand);
  ExpressionPtr conjunction();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concat();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters = true);
  ExpressionPtr primary();
  ExpressionPtr string();
  ExpressionPtr number();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr object);
  ExpressionPtr subscript(ExpressionPtr object);
  ExpressionPtr call(ExpressionPtr function);
  ExpressionPtr filters(ExpressionPtr value);
  ExpressionPtr filter(ExpressionPtr value);
  ExpressionPtr test(ExpressionPtr value);
  void arguments(Expression& expression);

  const std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
};

/// Parses a template. Throws SyntaxFault for anything outside the subset.
Statements parse(std::string_view source, TagSpace space);

}  // namespace zoo::chat
