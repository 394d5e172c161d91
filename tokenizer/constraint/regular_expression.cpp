#include "tokenizer/constraint/regular_expression.h"

#include <optional>

#include "data/base/error.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using Ranges = Pattern::Ranges;

// Larger counts only make the automaton too large.
constexpr int kLargestCount = 10000;
constexpr int kDeepestGroup = 200;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  RegularExpression parse() {
    RegularExpression result;
    result.begins = take('^');
    result.pattern = alternatives();
    result.ends = take('$');
    if (at_ < text_.size()) refuse(peek(')') ? "a ) that closes nothing" : "an anchor inside of the pattern");
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error("the regular expression '", text_, "' has ", what, " at byte ", at_);
  }

  bool peek(char character) const { return at_ < text_.size() && text_[at_] == character; }
  bool take(char character) {
    if (!peek(character)) return false;
    ++at_;
    return true;
  }
  bool at_end() const { return at_ == text_.size() || peek('|') || peek(')') || peek('$'); }

  PatternPtr alternatives() {
    if (++depth_ > kDeepestGroup) refuse("groups nested too deeply");
    std::vector<PatternPtr> parts;
    do {
      std::vector<PatternPtr> steps;
      while (!at_end()) steps.push_back(repeated());
      parts.push_back(sequence(std::move(steps)));
    } while (take('|'));
    --depth_;
    return parts.size() == 1 ? parts[0] : choice(std::move(parts));
  }

  PatternPtr repeated() {
    PatternPtr part = single();
    for (;;) {
      if (take('*')) {
        part = repeat(part, 0);
      } else if (take('+')) {
        part = repeat(part, 1);
      } else if (take('?')) {
        part = optional(part);
      } else if (peek('{') && counts()) {
        part = repeat(part, least_, most_);
      } else {
        return part;
      }
      take('?');  // lazy: matches the same texts
    }
  }

  // {m} {m,} {m,n}; anything else is a literal brace.
  bool counts() {
    const std::size_t begin = at_++;
    const auto least = number();
    most_ = least.value_or(0);
    if (least && take(',')) most_ = number().value_or(Pattern::kEndless);
    if (!least || !take('}')) {
      at_ = begin;
      return false;
    }
    least_ = *least;
    if (most_ != Pattern::kEndless && most_ < least_) refuse("a count whose end is before its beginning");
    return true;
  }

  std::optional<int> number() {
    std::optional<int> value;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = value.value_or(0) * 10 + (text_[at_++] - '0');
      if (*value > kLargestCount) refuse("a count above " + std::to_string(kLargestCount));
    }
    return value;
  }

  PatternPtr single() {
    if (take('(')) {
      if (take('?') && !take(':')) refuse("a group that is more than a group (lookaround, a name or a flag)");
      PatternPtr inner = alternatives();
      if (!take(')')) refuse("a group without its end");
      return inner;
    }
    if (take('[')) return one_of(set());
    if (take('.')) return one_of(complement({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
    if (take('\\')) return one_of(escape());
    if (peek('*') || peek('+') || peek('?')) refuse("a repetition of nothing");
    if (peek('^')) refuse("an anchor inside of the pattern");
    const char32_t character = next_code_point(text_, at_);
    return one_of({{character, character}});
  }

  Ranges escape() {
    if (at_ == text_.size()) refuse("a \\ at the end");
    const char letter = text_[at_];
    if (static_cast<unsigned char>(letter) < 0x80) ++at_;
    switch (letter) {
      case 'd':
        return {{'0', '9'}};
      case 'D':
        return complement({{'0', '9'}});
      case 'w':
        return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
      case 'W':
        return complement({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
      case 's':
        return {{'\t', '\r'}, {' ', ' '}};
      case 'S':
        return complement({{'\t', '\r'},
                           {0x1C, ' '},
                           {0x85, 0x85},
                           {0xA0, 0xA0},
                           {0x1680, 0x1680},
                           {0x2000, 0x200A},
                           {0x2028, 0x2029},
                           {0x202F, 0x202F},
                           {0x205F, 0x205F},
                           {0x3000, 0x3000},
                           {0xFEFF, 0xFEFF}});
      case 'n':
        return {{'\n', '\n'}};
      case 't':
        return {{'\t', '\t'}};
      case 'r':
        return {{'\r', '\r'}};
      case 'f':
        return {{'\f', '\f'}};
      case 'v':
        return {{'\v', '\v'}};
      case 'x':
        return hexadecimal(2);
      case 'u':
        return hexadecimal(4);
      default:
        break;
    }
    const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    if (is_letter || (letter >= '0' && letter <= '9')) {
      --at_;
      refuse(std::string("\\") + letter + ", which is not supported,");
    }
    if (static_cast<unsigned char>(letter) < 0x80) {
      const auto character = static_cast<char32_t>(letter);
      return {{character, character}};
    }
    const char32_t character = next_code_point(text_, at_);
    return {{character, character}};
  }

  Ranges hexadecimal(std::size_t digits) {
    char32_t value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const char digit = at_ < text_.size() ? text_[at_] : ' ';
      const std::size_t place = std::string_view("0123456789abcdefABCDEF").find(digit);
      if (place == std::string_view::npos) refuse("a \\x or \\u without its digits");
      value = value * 16 + static_cast<char32_t>(place < 16 ? place : place - 6);
      ++at_;
    }
    if (value >= 0xD800 && value <= 0xDFFF) refuse("a surrogate, which is not a character,");
    return {{value, value}};
  }

  Ranges set() {
    const bool inverted = take('^');
    Ranges ranges;
    for (bool first = true; first || !peek(']'); first = false) {
      if (at_ == text_.size()) refuse("a [ without its ]");
      const Ranges begin = set_member();
      const bool one = begin.size() == 1 && begin[0].first == begin[0].second;
      const bool range = one && peek('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
      if (!range) {
        ranges.insert(ranges.end(), begin.begin(), begin.end());
        continue;
      }
      ++at_;
      const Ranges end = set_member();
      if (end.size() != 1 || end[0].first != end[0].second || end[0].first < begin[0].first)
        refuse("a range whose end is before its beginning");
      ranges.emplace_back(begin[0].first, end[0].first);
    }
    take(']');
    // Removes the surrogates that a range may include.
    return inverted ? complement(ranges) : complement(complement(ranges));
  }

  Ranges set_member() {
    if (take('\\')) return peek('b') ? (++at_, Ranges{{'\b', '\b'}}) : escape();
    if (peek('[') && at_ + 1 < text_.size() && text_[at_ + 1] == ':')
      refuse("a [:class:], which is not supported,");
    const char32_t character = next_code_point(text_, at_);
    return {{character, character}};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0, least_ = 0, most_ = 0;
};

}  // namespace

RegularExpression parse_regular_expression(std::string_view text) {
  require_utf8(text, "a regular expression");
  return Parser(text).parse();
}

}  // namespace zoo
