#include "tokenizer/constraint/json_values.h"

#include <string>

namespace zoo {
namespace {

PatternPtr digit(char first, char last) {
  return one_of({{static_cast<char32_t>(first), static_cast<char32_t>(last)}});
}

PatternPtr digits(std::size_t count) {
  return repeat(digit('0', '9'), static_cast<int>(count), static_cast<int>(count));
}

// Numbers from least to most, which have the same number of digits.
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

}  // namespace

PatternPtr json_string_of(const PatternPtr& characters) {
  return sequence({literal("\""), written(characters), literal("\"")});
}

PatternPtr integers_between(std::int64_t least, std::int64_t most) {
  std::vector<PatternPtr> parts;
  if (least < 0) parts.push_back(sequence({literal("-"), positive_between(most < 0 ? -most : 1, -least)}));
  if (most >= 0) parts.push_back(positive_between(least > 0 ? least : 0, most));
  return choice(std::move(parts));
}

}  // namespace zoo
