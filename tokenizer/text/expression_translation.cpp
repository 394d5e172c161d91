#include <array>
#include <cstdio>
#include <optional>

#include "data/base/error.h"
#include "data/base/lines.h"
#include "tokenizer/text/character_set.h"
#include "tokenizer/text/text_pattern.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using Set = icu::UnicodeSet;

constexpr int kDeepestGroup = 200;

std::string hexadecimal(UChar32 c) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "\\x{%X}", static_cast<unsigned>(c));
  return text.data();
}

std::string written(const Set& set) {
  if (set.isEmpty()) return "(?!)";
  std::string text = "[";
  for (std::int32_t i = 0; i < set.getRangeCount(); ++i)
    text += hexadecimal(set.getRangeStart(i)) + "-" + hexadecimal(set.getRangeEnd(i));
  return text + "]";
}

// The characters that equal an ASCII one if case is ignored, including the long s and the Kelvin sign.
Set any_case(char32_t c) {
  Set set(static_cast<UChar32>(c), static_cast<UChar32>(c));
  if (is_ascii_letter(c)) set.add(static_cast<UChar32>(c ^ 0x20));
  if ((c | 0x20) == 's') set.add(0x17F);
  if ((c | 0x20) == 'k') set.add(0x212A);
  return set;
}

class Translator {
 public:
  Translator(std::string_view text, bool captures) : text_(text), captures_(captures) {}

  std::string translate() {
    if (take("(?i)")) folds_ = true;
    std::string result = alternatives();
    if (at_ < text_.size()) refuse("a ) that closes nothing");
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error("not a regular expression that is supported: it has ", what, " at byte ", at_);
  }

  bool peek(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }

  std::string alternatives() {
    if (++depth_ > kDeepestGroup) refuse("groups nested too deeply");
    std::string result;
    before_ = 0;
    while (at_ < text_.size() && !peek(')')) {
      if (take("|")) {
        result += '|';
        before_ = 0;
      } else {
        result += repeated();
      }
    }
    --depth_;
    return result;
  }

  std::string repeated() {
    repeatable_ = true;
    literal_ = 0;
    std::string part = single();
    const char32_t literal = literal_;
    const std::string count = repetition();
    if (!count.empty() && !repeatable_) refuse("a repeated anchor or lookaround");
    check_fold_of(literal);
    before_ = count.empty() ? literal : 0;
    // Oniguruma repeats what is counted, where ICU would take it without a way back.
    if (count.starts_with('{') && take("+")) return "(?:" + part + count + ")+";
    return part + count;
  }

  // If case is ignored, some pairs of letters equal one character: "ss" is "ß".
  void check_fold_of(char32_t literal) const {
    if (!folds_ || before_ == 0 || literal == 0) return;
    const char pair[] = {static_cast<char>(before_ | 0x20), static_cast<char>(literal | 0x20), '\0'};
    for (const char* folded : {"ss", "st", "ff", "fi", "fl"})
      if (std::string_view(pair) == folded) refuse(std::string("'") + pair + "' without regard to case");
  }

  std::string repetition() {
    std::string count;
    if (take("*") || take("+") || take("?")) {
      count = text_[at_ - 1];
      if (take("?") || take("+")) count += text_[at_ - 1];
    } else if (peek('{')) {
      count = interval();
    }
    const bool repeats = count.starts_with('{') && peek('+');
    if (!count.empty() && !repeats &&
        (peek('*') || peek('+') || peek('?') || (peek('{') && !interval().empty())))
      refuse("a repetition of a repetition");
    return count;
  }

  // {m} {m,} {,n} {m,n}; another brace is a literal.
  std::string interval() {
    const std::size_t begin = at_++;
    const std::optional<int> least = number();
    const bool comma = take(",");
    const std::optional<int> most = comma ? number() : least;
    if (!take("}") || (!least && !most)) {
      at_ = begin;
      return "";
    }
    if (least && most && *most < *least) refuse("a count whose end is before its beginning");
    std::string count = "{" + std::to_string(least.value_or(0));
    if (comma) count += "," + (most ? std::to_string(*most) : "");
    count += '}';
    if (peek('?') && !comma) refuse("a ? after a count");
    return take("?") ? count + "?" : count;
  }

  std::optional<int> number() {
    constexpr int kLargestCount = 1000;
    std::optional<int> value;
    while (at_ < text_.size() && is_ascii_digit(text_[at_])) {
      value = value.value_or(0) * 10 + (text_[at_++] - '0');
      if (*value > kLargestCount) refuse("a count above " + std::to_string(kLargestCount));
    }
    return value;
  }

  std::string single() {
    if (take("(")) return group();
    if (take("[")) return written(brackets());
    if (take(".")) return written(Set(0, 0x10FFFF).remove('\n'));
    if (take("^")) return anchor("(?:\\A|(?<=\\x{A})(?!\\z))");
    if (take("$")) return anchor("(?=\\x{A}|\\z)");
    if (take("\\")) return escape();
    if (peek('*') || peek('+') || peek('?')) refuse("a repetition of nothing");
    return one(next_code_point(text_, at_));
  }

  std::string anchor(std::string text) {
    repeatable_ = false;
    return text;
  }

  std::string one(char32_t c) {
    if (!folds_) return hexadecimal(static_cast<UChar32>(c));
    if (c >= 0x80) refuse("a character outside of ASCII without regard to case");
    literal_ = c;
    return written(any_case(c));
  }

  std::string group() {
    const bool outer = folds_;
    std::string begin = captures_ && !peek('?') ? "(" : "(?:";
    if (take("?i:")) {
      folds_ = true;
    } else if (take("?-i:")) {
      folds_ = false;
    } else if (!take("?:") && peek('?')) {
      begin.clear();
      for (const char* kind : {"?=", "?!", "?<=", "?<!", "?>"})
        if (begin.empty() && take(kind)) begin = std::string("(") + kind;
      if (begin.empty()) refuse("a group of a kind that is not supported");
    }
    std::string inner = alternatives();
    if (!take(")")) refuse("a group without its end");
    folds_ = outer;
    repeatable_ = begin == "(" || begin == "(?:" || begin == "(?>";
    literal_ = 0;
    return begin + inner + ")";
  }

  std::string escape() {
    if (at_ == text_.size()) refuse("a \\ at the end");
    switch (text_[at_]) {
      case 'b':
      case 'B': {
        const std::string word = written(*characters_of_property("word"));
        const bool at_boundary = text_[at_++] == 'b';
        return anchor(at_boundary
                          ? "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))"
                          : "(?:(?<=" + word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word + "))");
      }
      case 'A':
      case 'z': return anchor(std::string("\\") + text_[at_++]);
      case 'Z': ++at_; return anchor("(?=\\x{A}?\\z)");
      case 'N': ++at_; return written(Set(0, 0x10FFFF).remove('\n'));
      case 'O': ++at_; return written(Set(0, 0x10FFFF));
      case 'w':
      case 'W': {
        Set word = *characters_of_property("word");
        if (text_[at_++] == 'W') word.complement();
        return written(without_case(word));
      }
      default: break;
    }
    if (const std::optional<Set> set = escaped_set()) return written(without_case(*set));
    return one(escaped_character());
  }

  // Under (?i) a class contains what equals its members: only classes without such are translated.
  Set without_case(const Set& set) const {
    if (!folds_) return set;
    Set cased = *characters_of_property("L");
    cased.addAll(*characters_of_property("M"))
        .addAll(*characters_of_property("Nl"))
        .addAll(*characters_of_property("So"));
    if (!set.containsNone(cased)) refuse("a class of letters without regard to case");
    return set;
  }

  // \d \h \s \w \p{…} and their complements.
  std::optional<Set> escaped_set() {
    const char letter = text_[at_];
    if (letter != 'p' && letter != 'P') {
      std::optional<Set> set = characters_of_escape(letter);
      if (set) ++at_;
      return set;
    }
    const std::size_t end = text_.find('}', at_);
    if (at_ + 1 >= text_.size() || text_[at_ + 1] != '{' || end == text_.npos)
      refuse("a \\p without its {…}");
    std::string_view name = text_.substr(at_ + 2, end - at_ - 2);
    bool inverted = letter == 'P';
    if (name.starts_with('^')) {
      inverted = !inverted;
      name.remove_prefix(1);
    }
    std::optional<Set> set = characters_of_property(name);
    if (!set) refuse("the property '" + std::string(name) + "', which is not supported,");
    at_ = end + 1;
    if (inverted) set->complement();
    return set;
  }

  char32_t escaped_character() {
    const char letter = text_[at_];
    const std::size_t control = std::string_view("tnrfvae").find(letter);
    if (control != std::string_view::npos) {
      ++at_;
      return static_cast<char32_t>("\t\n\r\f\v\a\x1B"[control]);
    }
    if (letter == 'x' || letter == 'u') return escaped_code();
    if (is_ascii_letter(letter) || is_ascii_digit(letter))
      refuse(std::string("\\") + letter + ", which is not supported,");
    return next_code_point(text_, at_);
  }

  // \xHH, \x{H…} and \uHHHH, of characters.
  char32_t escaped_code() {
    const bool braces = text_.substr(at_).starts_with("x{");
    const std::size_t begin = at_ + (braces ? 2 : 1);
    const std::size_t end = braces ? text_.find('}', begin) : begin + (text_[at_] == 'x' ? 2 : 4);
    const bool complete = end <= text_.size() && end - begin <= 8;
    const auto value =
        complete ? number_in<std::uint32_t>(text_.substr(begin, end - begin), 16) : std::nullopt;
    if (!value || *value > 0x10FFFF || (*value >= 0xD800 && *value <= 0xDFFF) ||
        (!braces && text_[at_] == 'x' && *value > 0x7F))
      refuse("a \\x or \\u that is no character");
    at_ = end + (braces ? 1 : 0);
    return *value;
  }

  // Translates the set after a [.
  Set brackets() {
    if (++depth_ > kDeepestGroup) refuse("brackets nested too deeply");
    const bool inverted = take("^");
    if (peek(']')) refuse("a [ whose first character is ]");
    Set all(0, 0x10FFFF), part;
    while (!peek(']')) {
      if (at_ == text_.size()) refuse("a [ without its ]");
      if (take("&&")) {
        all.retainAll(part);
        part.clear();
      } else {
        add_member(part);
      }
    }
    ++at_;
    all.retainAll(part);
    if (folds_) fold(all);
    if (inverted) all.complement();
    if (inverted && folds_) without_case(all);
    --depth_;
    return all;
  }

  void fold(Set& set) const {
    if (set.isEmpty() || set.getRangeEnd(set.getRangeCount() - 1) >= 0x80) {
      without_case(set);
      return;
    }
    const Set members = set;
    for (char32_t c = 0; c < 0x80; ++c)
      if (members.contains(static_cast<UChar32>(c))) set.addAll(any_case(c));
  }

  void add_member(Set& part) {
    if (const std::optional<Set> set = member_class()) {
      part.addAll(*set);
      if (is_range()) refuse("a - after a class");
      return;
    }
    const char32_t first = member();
    char32_t last = first;
    if (is_range()) {
      ++at_;
      if (first == '-' || peek('[') || text_.substr(at_).starts_with("&&"))
        refuse("a range whose ends are not two plain characters");
      last = member();
      if (last < first) refuse("a range whose end is before its beginning");
      if (is_range()) refuse("a - after a range");
    }
    part.add(static_cast<UChar32>(first), static_cast<UChar32>(last));
  }

  bool is_range() const { return peek('-') && !text_.substr(at_).starts_with("-]"); }

  // A class inside of brackets: [:name:], […], \d and so on.
  std::optional<Set> member_class() {
    if (take("[:")) return named_class();
    if (take("[")) return brackets();
    if (!take("\\")) return std::nullopt;
    std::optional<Set> set = at_ < text_.size() ? escaped_set() : std::nullopt;
    if (!set) --at_;
    return set;
  }

  Set named_class() {
    const bool inverted = take("^");
    const std::size_t end = text_.find(":]", at_);
    std::optional<Set> set;
    if (end != text_.npos) set = characters_of_bracket(text_.substr(at_, end - at_));
    if (!set) refuse("a [:class:] that is not supported");
    at_ = end + 2;
    if (inverted) set->complement();
    return *set;
  }

  char32_t member() {
    const bool escaped = take("\\");
    if (at_ == text_.size()) refuse("a [ without its ]");
    return escaped ? escaped_character() : next_code_point(text_, at_);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool captures_;  // groups without a ?
  bool folds_ = false, repeatable_ = true;
  char32_t literal_ = 0, before_ = 0;  // under (?i): the letter just read, and the one before it
};

}  // namespace

std::string icu_expression(std::string_view oniguruma, bool captures) {
  require_utf8(oniguruma, "a regular expression");
  return Translator(oniguruma, captures).translate();
}

}  // namespace zoo
