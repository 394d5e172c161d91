#include "tokenizer/jinja/lexer.h"

#include <algorithm>
#include <array>

#include "data/base/lines.h"
#include "tokenizer/jinja/python_text.h"
#include "tokenizer/text/utf8.h"

namespace zoo::chat {
namespace {

// Line ends as "\n", without the last one.
std::string with_plain_line_ends(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    text += source[i] == '\r' ? '\n' : source[i];
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

bool starts_name(char c) { return is_ascii_letter(c) || c == '_'; }

class Lexer {
 public:
  Lexer(std::string_view source, bool trims) : source_(with_plain_line_ends(source)), trims_(trims) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) read_text();
    add(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw SyntaxFault{line_, what}; }

  bool sees(std::string_view text) const { return source_.compare(at_, text.size(), text) == 0; }

  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void skip(std::size_t count) {
    const auto begin = source_.begin() + static_cast<std::ptrdiff_t>(at_);
    line_ += static_cast<int>(std::count(begin, begin + static_cast<std::ptrdiff_t>(count), '\n'));
    at_ += count;
  }

  void skip_space() {
    for (std::size_t next = at_; at_ < source_.size(); skip(next - at_))
      if (!is_python_space(next_code_point(source_, next))) return;
  }

  // Reads the text up to the next tag, output or comment, and this one.
  void read_text() {
    const bool at_line_start = at_ == 0 || source_[at_ - 1] == '\n';
    std::size_t open = at_;
    while ((open = source_.find('{', open)) != std::string::npos &&
           (open + 1 == source_.size() ||
            std::string_view("{%#").find(source_[open + 1]) == std::string_view::npos))
      ++open;
    const std::size_t size = std::min(open, source_.size()) - at_;
    std::string text = source_.substr(at_, size);
    if (open == std::string::npos) {
      add(TokenKind::text, std::move(text));
      skip(size);
      return;
    }
    const char kind = source_[open + 1], sign = open + 2 < source_.size() ? source_[open + 2] : ' ';
    if (sign == '-') {
      text = stripped(text, Side::right);
    } else if (trims_ && sign != '+' && kind != '{') {
      // lstrip_blocks: a tag removes the white space before it in its line.
      const std::size_t line = text.rfind('\n') + 1;
      if ((line > 0 || at_line_start) && stripped(text.substr(line), Side::both).empty()) text.resize(line);
    }
    if (!text.empty()) add(TokenKind::text, std::move(text));
    skip(size + (sign == '-' || sign == '+' ? 3 : 2));
    if (kind == '#') return skip_comment();
    add(kind == '{' ? TokenKind::output_begin : TokenKind::tag_begin, "");
    read_inside(kind == '{');
  }

  void skip_comment() {
    const std::size_t close = source_.find("#}", at_);
    if (close == std::string::npos) fail("a comment has no end");
    const bool trims = close > at_ && source_[close - 1] == '-';
    const bool keeps = close > at_ && source_[close - 1] == '+';
    skip(close + 2 - at_);
    skip_after(trims, keeps);
  }

  // trim_blocks removes the line end after a tag; "-" removes all white space, "+" nothing.
  void skip_after(bool trims, bool keeps) {
    if (trims) return skip_space();
    if (trims_ && !keeps && sees("\n")) skip(1);
  }

  bool read_end(bool is_output) {
    if (!open_brackets_.empty()) return false;
    const std::string_view close = is_output ? "}}" : "%}";
    const char sign = source_[at_];
    const bool trims = sign == '-', keeps = sign == '+' && !is_output;
    if (source_.compare(at_ + (trims || keeps ? 1 : 0), 2, close) != 0) return false;
    add(is_output ? TokenKind::output_end : TokenKind::tag_end, "");
    skip(trims || keeps ? 3 : 2);
    skip_after(trims, keeps || is_output);
    return true;
  }

  void read_inside(bool is_output) {
    const int begin = line_;
    for (skip_space(); at_ < source_.size(); skip_space()) {
      if (read_end(is_output)) return;
      read_token();
    }
    line_ = begin;
    fail(is_output ? "'{{' has no '}}'" : "'{%' has no '%}'");
  }

  void read_token() {
    const char c = source_[at_];
    if (is_ascii_digit(c)) return read_number();
    if (starts_name(c)) {
      std::size_t end = at_;
      while (end < source_.size() && (starts_name(source_[end]) || is_ascii_digit(source_[end]))) ++end;
      add(TokenKind::name, source_.substr(at_, end - at_));
      return skip(end - at_);
    }
    if (c == '\'' || c == '"') return read_string();
    constexpr std::array kSymbols = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "(",
                                     ")",  "[",  "]",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto symbol = std::ranges::find_if(kSymbols, [this](const char* s) { return sees(s); });
    if (symbol == kSymbols.end()) {
      std::size_t ignored = at_;
      fail("unexpected character " + describe_character(next_code_point(source_, ignored)));
    }
    match_bracket(**symbol);
    add(TokenKind::symbol, *symbol);
    skip(std::string_view(*symbol).size());
  }

  void match_bracket(char c) {
    if (c == '(' || c == '[' || c == '{') open_brackets_ += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (open_brackets_.empty() || open_brackets_.back() != c) fail(std::string("unexpected '") + c + "'");
    open_brackets_.pop_back();
  }

  void read_number() {
    std::size_t end = at_;
    const auto digits = [&] {
      while (end < source_.size() && (is_ascii_digit(source_[end]) || source_[end] == '_')) ++end;
    };
    const auto digit_at = [&](std::size_t i) { return i < source_.size() && is_ascii_digit(source_[i]); };
    digits();
    bool is_real = false;
    if (source_.compare(end, 1, ".") == 0 && digit_at(end + 1) && !(at_ > 0 && source_[at_ - 1] == '.')) {
      is_real = true;
      ++end;
      digits();
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const std::size_t sign = source_[end + 1] == '+' || source_[end + 1] == '-' ? 1 : 0;
      if (digit_at(end + 1 + sign)) {
        is_real = true;
        end += 1 + sign;
        digits();
      }
    }
    std::string number = source_.substr(at_, end - at_);
    const bool is_odd = end < source_.size() && starts_name(source_[end]);
    if (is_odd || number.find('_') != std::string::npos ||
        (!is_real && number.size() > 1 && number[0] == '0'))
      fail("the number that begins with '" + number + "' is not supported");
    add(is_real ? TokenKind::real : TokenKind::integer, std::move(number));
    skip(end - at_);
  }

  void read_string() {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != source_[at_]) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail("a string has no end");
    add(TokenKind::string, unescaped(std::string_view(source_).substr(at_ + 1, end - at_ - 1)));
    skip(end + 1 - at_);
  }

  // Python's escapes; an unknown one keeps its backslash.
  std::string unescaped(std::string_view text) const {
    constexpr std::string_view kNames = "\\'\"abfnrtv", kMeanings = "\\'\"\a\b\f\n\r\t\v";
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        result += text[i];
        continue;
      }
      const char c = text[++i];
      const std::size_t name = kNames.find(c);
      if (name != std::string_view::npos) {
        result += kMeanings[name];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        append_code(result, text, i, c == 'x' ? 2 : c == 'u' ? 4 : 8);
      } else if (c >= '0' && c <= '7') {
        char32_t code = 0;
        const std::size_t end = std::min(i + 3, text.size());
        for (; i < end && text[i] >= '0' && text[i] <= '7'; ++i)
          code = code * 8 + static_cast<char32_t>(text[i] - '0');
        append_utf8(result, code);
        --i;
      } else if (c == 'N') {
        fail("the escape \\N is not supported");
      } else if (c != '\n') {
        (result += '\\') += c;
      }
    }
    return result;
  }

  void append_code(std::string& result, std::string_view text, std::size_t& at, std::size_t digits) const {
    const std::string_view written = text.substr(at + 1, digits);
    const auto code = number_in<std::uint32_t>(written, 16);
    if (!code || written.size() < digits) fail("an escape in a string is too short");
    if (*code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000))
      fail("an escape in a string is no character");
    append_utf8(result, *code);
    at += digits;
  }

  std::string source_, open_brackets_;
  bool trims_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source, bool trims) { return Lexer(source, trims).run(); }

}  // namespace zoo::chat
