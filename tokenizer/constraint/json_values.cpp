#include "tokenizer/constraint/json_values.h"

#include <string>

#include "tokenizer/constraint/regular_expression.h"

namespace zoo {
namespace {

PatternPtr digit(char first, char last) {
  return one_of({{static_cast<char32_t>(first), static_cast<char32_t>(last)}});
}

PatternPtr digits(std::size_t count) {
  return repeat(digit('0', '9'), static_cast<int>(count), static_cast<int>(count));
}

// Numbers from least to most, both with the same number of digits.
PatternPtr between(const std::string& least, const std::string& most) {
  if (least.empty()) return literal("");
  if (least.find_first_not_of('0') == std::string::npos && most.find_first_not_of('9') == std::string::npos)
    return digits(least.size());
  const std::size_t rest = least.size() - 1;
  if (least[0] == most[0])
    return sequence({digit(least[0], least[0]), between(least.substr(1), most.substr(1))});
  std::vector<PatternPtr> parts{
      sequence({digit(least[0], least[0]), between(least.substr(1), std::string(rest, '9'))}),
      sequence({digit(most[0], most[0]), between(std::string(rest, '0'), most.substr(1))})};
  if (least[0] + 1 < most[0])
    parts.push_back(
        sequence({digit(static_cast<char>(least[0] + 1), static_cast<char>(most[0] - 1)), digits(rest)}));
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

// A decimal fraction of at most `most` digits, not only zeros if `positive`.
PatternPtr fraction(int most, bool positive) {
  if (most < 1) return positive ? choice({}) : literal("");
  if (!positive) return optional(sequence({literal("."), repeat(digit('0', '9'), 1, most)}));
  std::vector<PatternPtr> parts;
  for (int zeros = 0; zeros < most; ++zeros)
    parts.push_back(sequence(
        {repeat(literal("0"), zeros, zeros), digit('1', '9'), repeat(digit('0', '9'), 0, most - zeros - 1)}));
  return sequence({literal("."), choice(std::move(parts))});
}

constexpr int kDigits = 15;

// So few digits that a double can distinguish the number from an open bound of this size.
int digits_beside(std::int64_t bound) { return kDigits - static_cast<int>(std::to_string(bound).size()); }

// Numbers without a sign.
PatternPtr magnitudes_between(const NumberRange& range) {
  const auto& [least, most, least_is_open, most_is_open] = range;
  std::vector<PatternPtr> parts;
  if (!most_is_open && (most > least || !least_is_open)) {
    const PatternPtr zeros = optional(sequence({literal("."), repeat(literal("0"), 1, kDigits)}));
    parts.push_back(sequence({integers_between(most, most), zeros}));
  }
  if (least < most) {
    const bool beside_most = most_is_open && least + 1 == most;
    const int digits = least_is_open || beside_most ? digits_beside(beside_most ? most : least) : kDigits;
    parts.push_back(sequence({integers_between(least, least), fraction(digits, least_is_open)}));
  }
  if (least + 1 < most) {
    const int digits = most_is_open ? digits_beside(most) : kDigits;
    parts.push_back(sequence({integers_between(most - 1, most - 1), fraction(digits, false)}));
    parts.push_back(sequence({integers_between(least + 1, most - 2), fraction(kDigits, false)}));
  }
  return choice(std::move(parts));
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

PatternPtr numbers_between(const NumberRange& range) {
  if (range.most < range.least) return choice({});
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
