#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zoo::chat {

enum class TokenKind {
  text,
  output_begin,
  output_end,
  tag_begin,
  tag_end,
  name,
  string,
  integer,
  real,
  symbol,
  end
};

/// A piece of a template. `text` is the text, the name, the string's value, the number or the symbol.
struct Token {
  TokenKind kind;
  std::string text;
  int line;
};

/// A mistake in a template's syntax; ChatTemplate adds the template's name and throws Error.
struct SyntaxFault {
  int line;
  std::string what;
};

/// Divides a template as jinja2 does: without comments, and without the white space that tags remove;
/// `trims`: with trim_blocks and lstrip_blocks, also around tags in their lines. The last token is `end`.
/// Throws SyntaxFault.
std::vector<Token> tokenize(std::string_view source, bool trims);

}  // namespace zoo::chat
