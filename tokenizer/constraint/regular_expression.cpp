#include "tokenizer/constraint/regular_expression.h"

#include <initializer_list>
#include <optional>

#include "data/base/error.h"
#include "tokenizer/text/character_set.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using Ranges = Pattern::Ranges;

// The characters of a class in every release of the language, or in any release, up to Unicode 16.
enum class Extent { kEvery, kAny };

// The characters of some general categories, and `more`: in every Python from 3.9 on, or in any of them.
Ranges categories(std::initializer_list<const char*> names, Ranges more, Extent extent) {
  UErrorCode status = U_ZERO_ERROR;
  static const icu::UnicodeSet known(u"[:age=13.0:]", status);
  for (const char* name : names) {
    icu::UnicodeSet set = *characters_of_property(name);
    if (extent == Extent::kEvery) set.retainAll(known);
    for (std::int32_t i = 0; i < set.getRangeCount(); ++i)
      more.emplace_back(static_cast<char32_t>(set.getRangeStart(i)),
                        static_cast<char32_t>(set.getRangeEnd(i)));
  }
  return more;
}

const Ranges& digits_of(ExpressionDialect dialect, Extent extent) {
  static const Ranges every = categories({"Nd"}, {}, Extent::kEvery),
                      any = categories({"Nd"}, {}, Extent::kAny), ascii{{'0', '9'}};
  if (dialect == ExpressionDialect::kEcmaScript) return ascii;
  return extent == Extent::kEvery ? every : any;
}

const Ranges& words_of(ExpressionDialect dialect, Extent extent) {
  static const Ranges every = categories({"L", "N"}, {{'_', '_'}}, Extent::kEvery),
                      any = categories({"L", "N"}, {{'_', '_'}}, Extent::kAny),
                      ascii{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  if (dialect == ExpressionDialect::kEcmaScript) return ascii;
  return extent == Extent::kEvery ? every : any;
}

const Ranges& spaces_of(ExpressionDialect dialect) {
  static const Ranges python{{'\t', '\r'},     {0x1C, ' '},      {0x85, 0x85},     {0xA0, 0xA0},
                             {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                             {0x205F, 0x205F}, {0x3000, 0x3000}},
      ecma_script{{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
                  {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  return dialect == ExpressionDialect::kPython ? python : ecma_script;
}

const Ranges& line_ends_of(ExpressionDialect dialect) {
  static const Ranges python{{'\n', '\n'}}, ecma_script{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
  return dialect == ExpressionDialect::kPython ? python : ecma_script;
}

// Larger counts only make the automaton too large.
constexpr int kLargestCount = 10000;
constexpr int kDeepestGroup = 200;

class Parser {
 public:
  Parser(std::string_view text, ExpressionDialect dialect) : text_(text), dialect_(dialect) {}

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

  bool is_python() const { return dialect_ == ExpressionDialect::kPython; }

  PatternPtr repeated() {
    PatternPtr part = single();
    if (!repetition()) return part;
    part = repeat(part, least_, most_);
    take('?');  // lazy: matches the same texts
    // Possessive in Python, an error elsewhere.
    if (repetition()) refuse("a repetition of a repetition, which needs a group around the first,");
    return part;
  }

  // Reads * + ? or counts.
  bool repetition() {
    const bool star = take('*'), plus = !star && take('+'), once = !star && !plus && take('?');
    if (!star && !plus && !once) return peek('{') && counts();
    least_ = plus ? 1 : 0;
    most_ = once ? 1 : Pattern::kEndless;
    return true;
  }

  // {m} {m,} {m,n}, Python's {,n} and {,}; anything else is a literal brace.
  bool counts() {
    const std::size_t begin = at_++;
    const auto least = number();
    most_ = least.value_or(0);
    bool is_count = least.has_value();
    if (take(',')) {
      most_ = number().value_or(Pattern::kEndless);
      if (!least && peek('}') && !is_python()) refuse("a count without its beginning");
      is_count = true;
    }
    if (!is_count || !take('}')) {
      at_ = begin;
      return false;
    }
    least_ = least.value_or(0);
    if (most_ != Pattern::kEndless && most_ < least_) refuse("a count whose end is before its beginning");
    return true;
  }

  std::optional<int> number() {
    std::optional<int> value;
    while (at_ < text_.size() && is_ascii_digit(text_[at_])) {
      value = value.value_or(0) * 10 + (text_[at_++] - '0');
      if (*value > kLargestCount) refuse("a count above " + std::to_string(kLargestCount));
    }
    return value;
  }

  PatternPtr single() {
    if (take('(')) {
      if (take('?') && !take(':')) refuse("a group that is more than a group (lookaround, a name or a flag)");
      PatternPtr inner = alternatives();
      if (peek('$')) refuse("an anchor inside of the pattern");
      if (!take(')')) refuse("a group without its end");
      return inner;
    }
    if (take('[')) return one_of(set());
    if (take('.')) return one_of(complement(line_ends_of(dialect_)));
    if (take('\\')) return one_of(escape());
    if (peek('*') || peek('+') || peek('?')) refuse("a repetition of nothing");
    if (peek('^')) refuse("an anchor inside of the pattern");
    return one_of(one(next_code_point(text_, at_)));
  }

  // An inverted set excludes the characters that any release has in the class.
  Ranges escape(bool inverted = false) {
    const Extent inside = inverted ? Extent::kAny : Extent::kEvery,
                 outside = inverted ? Extent::kEvery : Extent::kAny;
    if (at_ == text_.size()) refuse("a \\ at the end");
    const char letter = text_[at_];
    if (static_cast<unsigned char>(letter) < 0x80) ++at_;
    if (const std::size_t control = std::string_view("ntrfv").find(letter); control != text_.npos)
      return one(static_cast<unsigned char>("\n\t\r\f\v"[control]));
    switch (letter) {
      case 'd': return digits_of(dialect_, inside);
      case 'D': return complement(digits_of(dialect_, outside));
      case 'w': return words_of(dialect_, inside);
      case 'W': return complement(words_of(dialect_, outside));
      case 's': return spaces_of(dialect_);
      case 'S': return complement(spaces_of(dialect_));
      case 'x': return one(hexadecimal(2));
      case 'u': return one(is_python() ? hexadecimal(4) : unicode_escape());
      default: break;
    }
    if (letter == '0' && (at_ == text_.size() || !is_ascii_digit(text_[at_]))) return {{0, 0}};
    if (letter == 'U' && is_python()) return one(hexadecimal(8));
    if (letter == 'a' && is_python()) return {{'\a', '\a'}};
    if (letter == 'c' && !is_python() && at_ < text_.size() && is_ascii_letter(text_[at_]))
      return one(text_[at_++] % 32);
    if (is_ascii_letter(letter) || is_ascii_digit(letter)) {
      --at_;
      refuse(std::string("\\") + letter + ", which is not supported,");
    }
    return one(static_cast<unsigned char>(letter) < 0x80 ? letter : next_code_point(text_, at_));
  }

  // The character of a code.
  Ranges one(char32_t code) const {
    if (code >= 0xD800 && code <= 0xDFFF) refuse("a surrogate, which is not a character,");
    if (code > 0x10FFFF) refuse("a code above 10FFFF");
    return {{code, code}};
  }

  std::optional<char32_t> digit() {
    const char letter = at_ < text_.size() ? text_[at_] : ' ';
    const std::size_t place = std::string_view("0123456789abcdefABCDEF").find(letter);
    if (place == std::string_view::npos) return std::nullopt;
    ++at_;
    return static_cast<char32_t>(place < 16 ? place : place - 6);
  }

  char32_t hexadecimal(std::size_t digits) {
    char32_t value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const auto next = digit();
      if (!next) refuse("a \\x or \\u without its digits");
      value = value * 16 + *next;
    }
    return value;
  }

  // ECMAScript's \u{H…}, \uHHHH and two of them that are a pair of surrogates.
  char32_t unicode_escape() {
    if (take('{')) {
      char32_t value = 0;
      bool has_digits = false;
      for (auto next = digit(); next; next = digit(), has_digits = true) {
        value = value * 16 + *next;
        if (value > 0x10FFFF) refuse("a code above 10FFFF");
      }
      if (!has_digits || !take('}')) refuse("a \\u{ without its digits and }");
      return value;
    }
    const char32_t value = hexadecimal(4);
    if (value < 0xD800 || value > 0xDBFF || !text_.substr(at_).starts_with("\\u")) return value;
    const std::size_t begin = at_;
    at_ += 2;
    const char32_t low = peek('{') ? 0 : hexadecimal(4);
    if (low >= 0xDC00 && low <= 0xDFFF) return 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
    at_ = begin;
    return value;
  }

  Ranges set() {
    const bool inverted = take('^');
    Ranges ranges;
    // A first ] is a literal in Python, and the end of an empty set in ECMAScript.
    for (bool first = is_python(); first || !peek(']'); first = false) {
      if (at_ == text_.size()) refuse("a [ without its ]");
      const Ranges begin = set_member(inverted);
      const bool is_one = begin.size() == 1 && begin[0].first == begin[0].second;
      const bool range = peek('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
      if (range && !is_one && is_python()) refuse("a range that begins with a class");
      if (!range || !is_one) {  // ECMAScript reads [\w-.] as three members
        ranges.insert(ranges.end(), begin.begin(), begin.end());
        continue;
      }
      ++at_;
      const Ranges end = set_member(inverted);
      if (end.size() != 1 || end[0].first != end[0].second) refuse("a range that ends with a class");
      if (end[0].first < begin[0].first) refuse("a range whose end is before its beginning");
      ranges.emplace_back(begin[0].first, end[0].first);
    }
    take(']');
    if (ranges.empty() && !inverted) refuse("a set without characters");
    // Removes the surrogates that a range may include.
    return inverted ? complement(ranges) : complement(complement(ranges));
  }

  Ranges set_member(bool inverted) {
    if (take('\\')) return peek('b') ? (++at_, Ranges{{'\b', '\b'}}) : escape(inverted);
    if (peek('[') && at_ + 1 < text_.size() && text_[at_ + 1] == ':')
      refuse("a [:class:], which is not supported,");
    return one(next_code_point(text_, at_));
  }

  std::string_view text_;
  ExpressionDialect dialect_;
  std::size_t at_ = 0;
  int depth_ = 0, least_ = 0, most_ = 0;
};

}  // namespace

RegularExpression parse_regular_expression(std::string_view text, ExpressionDialect dialect) {
  constexpr std::size_t kMostBytes = 65'536;  // each may become a kilobyte of patterns
  if (text.size() > kMostBytes) throw Error("the expression is too long");
  require_utf8(text, "a regular expression");
  return Parser(text, dialect).parse();
}

}  // namespace zoo
