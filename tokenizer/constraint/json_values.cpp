#include "tokenizer/constraint/json_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "tokenizer/constraint/regular_expression.h"

namespace zoo {
namespace {

PatternPtr digit(char first, char last) {
  return one_of({{static_cast<char32_t>(first), static_cast<char32_t>(last)}});
}

PatternPtr digits(int least, int most) { return repeat(digit('0', '9'), least, most); }

// Numbers from least to most, both with the same number of digits.
PatternPtr between(const std::string& least, const std::string& most) {
  if (least.empty()) return literal("");
  const int count = static_cast<int>(least.size());
  if (least.find_first_not_of('0') == std::string::npos && most.find_first_not_of('9') == std::string::npos)
    return digits(count, count);
  const std::size_t rest = least.size() - 1;
  if (least[0] == most[0])
    return sequence({digit(least[0], least[0]), between(least.substr(1), most.substr(1))});
  std::vector<PatternPtr> parts{
      sequence({digit(least[0], least[0]), between(least.substr(1), std::string(rest, '9'))}),
      sequence({digit(most[0], most[0]), between(std::string(rest, '0'), most.substr(1))})};
  if (least[0] + 1 < most[0])
    parts.push_back(sequence({digit(static_cast<char>(least[0] + 1), static_cast<char>(most[0] - 1)),
                              digits(count - 1, count - 1)}));
  return choice(std::move(parts));
}

PatternPtr positive_between(std::int64_t least, std::int64_t most) {
  std::vector<PatternPtr> parts;
  std::string begin = std::to_string(least);
  const std::string end = std::to_string(most);
  while (begin.size() < end.size()) {
    parts.push_back(between(begin, std::string(begin.size(), '9')));
    begin = "1" + std::string(begin.size(), '0');
  }
  parts.push_back(between(begin, end));
  return choice(std::move(parts));
}

// A character of a JSON string: plain or escaped.
PatternPtr written_character(const Pattern::Ranges& wanted) {
  Pattern::Ranges not_plain = complement(wanted);
  not_plain.insert(not_plain.end(), {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
  std::vector<PatternPtr> parts{one_of(complement(std::move(not_plain)))};
  for (const auto& [character, escape] :
       {std::pair{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}, {'\t', "\\t"}, {'\r', "\\r"}}) {
    for (const auto& [first, last] : wanted) {
      const auto code = static_cast<char32_t>(character);
      if (first <= code && code <= last) parts.push_back(literal(escape));
    }
  }
  return choice(std::move(parts));
}

PatternPtr written(const PatternPtr& pattern) {
  if (pattern->kind == Pattern::Kind::kCharacters) return written_character(pattern->characters);
  Pattern changed = *pattern;
  for (PatternPtr& part : changed.parts) part = written(part);
  return std::make_shared<const Pattern>(std::move(changed));
}

constexpr int kDigits = 15;

// Digits with a fraction above, or unless `open` equal to, that of the bound's; at most `most`.
PatternPtr digits_above(std::string_view bound, int most, bool open) {
  std::vector<PatternPtr> parts;
  if (bound.empty() && !open) return digits(0, most);
  if (bound.empty()) {  // not only zeros
    for (int zeros = 0; zeros < most; ++zeros)
      parts.push_back(
          sequence({repeat(literal("0"), zeros, zeros), digit('1', '9'), digits(0, most - zeros - 1)}));
    return choice(std::move(parts));
  }
  parts.push_back(sequence({digit(bound[0], bound[0]), digits_above(bound.substr(1), most - 1, open)}));
  if (bound[0] < '9')
    parts.push_back(sequence({digit(static_cast<char>(bound[0] + 1), '9'), digits(0, most - 1)}));
  return choice(std::move(parts));
}

// The same below it; at least one digit unless the bound has none.
PatternPtr digits_below(std::string_view bound, int most, bool open) {
  if (bound.empty()) return open ? choice({}) : repeat(literal("0"), 0, most);
  const PatternPtr rest = digits_below(bound.substr(1), most - 1, open);
  std::vector<PatternPtr> parts{
      sequence({digit(bound[0], bound[0]), bound.size() > 1 ? optional(rest) : rest})};
  if (bound[0] > '0')
    parts.push_back(sequence({digit('0', static_cast<char>(bound[0] - 1)), digits(0, most - 1)}));
  return choice(std::move(parts));
}

PatternPtr fraction(int most) {
  return most < 1 ? literal("") : optional(sequence({literal("."), digits(1, most)}));
}

// The digits of a number without a sign, before and after the point.
std::pair<std::int64_t, std::string> decimal_of(double number) {
  std::array<char, 512> text{};
  char* const end =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed).ptr;
  const std::string digits(text.data(), end);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  return {std::stoll(digits.substr(0, point)), digits.substr(std::min(point + 1, digits.size()))};
}

// Numbers without a sign.
PatternPtr magnitudes_between(const NumberRange& range) {
  const auto [least, above] = decimal_of(range.least);
  const auto [most, below] = decimal_of(range.most);
  const bool least_is_plain = above.empty() && !range.least_is_open,
             most_is_plain = below.empty() && !range.most_is_open,
             nears_most = range.most_is_open && below.empty();  // from the integer before it
  // So few digits that a double can distinguish the number from the bound.
  const auto digits_beside = [](std::int64_t bound) {
    return kDigits - static_cast<int>(std::to_string(bound).size());
  };
  const int digits = nears_most ? digits_beside(most) : kDigits;
  const int after_least = !least_is_plain ? digits_beside(least) : least + 1 == most ? digits : kDigits;
  const PatternPtr fractions_above =
      least_is_plain ? fraction(after_least)
                     : sequence({literal("."), digits_above(above, after_least, range.least_is_open)});
  const PatternPtr fractions_below =
      most_is_plain ? optional(sequence({literal("."), repeat(literal("0"), 1, kDigits)}))
      : below.empty()
          ? choice({})
          : optional(sequence({literal("."), digits_below(below, digits_beside(most), range.most_is_open)}));
  if (least == most) return sequence({integers_between(least, most), both(fractions_above, fractions_below)});
  return choice(
      {sequence({integers_between(least, least), fractions_above}),
       sequence({integers_between(least + 1, most - 2), fraction(kDigits)}),
       least + 1 < most ? sequence({integers_between(most - 1, most - 1), fraction(digits)}) : choice({}),
       sequence({integers_between(most, most), fractions_below})});
}

}  // namespace

PatternPtr searched_text(std::string_view expression, const PatternPtr& any) {
  const RegularExpression parsed = parse_regular_expression(expression, ExpressionDialect::kEcmaScript);
  std::vector<PatternPtr> parts;
  if (!parsed.begins) parts.push_back(repeat(any, 0));
  parts.push_back(parsed.pattern);
  if (!parsed.ends) parts.push_back(repeat(any, 0));
  return sequence(std::move(parts));
}

bool has_few_digits(double number) {
  const auto& [whole, fraction] = decimal_of(std::abs(number));
  return std::to_string(whole).size() + fraction.size() <= kDigits;
}

PatternPtr numbers_between(const NumberRange& range) {
  if (range.is_empty()) return choice({});
  std::vector<PatternPtr> parts;
  if (range.least < 0) {
    const bool to_zero = range.most > 0;
    parts.push_back(
        sequence({literal("-"), magnitudes_between({.least = to_zero ? 0 : -range.most,
                                                    .most = -range.least,
                                                    .least_is_open = to_zero || range.most_is_open,
                                                    .most_is_open = range.least_is_open})}));
  }
  if (range.most >= 0) {
    const bool from_zero = range.least < 0;
    parts.push_back(magnitudes_between({.least = from_zero ? 0 : range.least,
                                        .most = range.most,
                                        .least_is_open = !from_zero && range.least_is_open,
                                        .most_is_open = range.most_is_open}));
  }
  return choice(std::move(parts));
}

PatternPtr json_string_of(const PatternPtr& characters) {
  return sequence({literal("\""), written(characters), literal("\"")});
}

PatternPtr integers_between(std::int64_t least, std::int64_t most) {
  if (most < least) return choice({});
  std::vector<PatternPtr> parts;
  if (least < 0) parts.push_back(sequence({literal("-"), positive_between(most < 0 ? -most : 1, -least)}));
  if (most >= 0) parts.push_back(positive_between(least > 0 ? least : 0, most));
  return choice(std::move(parts));
}

}  // namespace zoo
