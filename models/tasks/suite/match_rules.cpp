#include "models/tasks/suite/match_rules.h"

#include <algorithm>
#include <cctype>

#include "data/base/error.h"
#include "tokenizer/jinja/python_text.h"

namespace zoo {

TextPattern python_pattern(std::string_view expression) {
  std::string_view left = expression;
  const bool dot_all = left.starts_with("(?s)");
  if (dot_all) left.remove_prefix(4);
  std::string translated;
  bool in_class = false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const char c = left[i];
    if (c == '\\' && i + 1 < left.size()) {
      const char next = left[++i];
      const bool is_word = std::isalnum(static_cast<unsigned char>(next)) != 0;
      if (is_word && std::string_view("dDsSnrtfvaxuAZ").find(next) == std::string_view::npos)
        throw Error("\\", next, " is not supported in a regular expression");
      translated += {'\\', next == 'Z' ? 'z' : next};
    } else if (in_class) {
      in_class = c != ']';
      if (c == '[' || c == '&') translated += '\\';  // sets in sets, to TextPattern
      translated += c;
    } else if (c == '[') {
      in_class = true;
      translated += c;
      if (left.substr(i + 1).starts_with('^')) translated += left[++i];
    } else if (c == '^' || c == '$') {
      translated += c == '^' ? "\\A" : "\\Z";
    } else if (c == '.' && dot_all) {
      translated += "\\O";
    } else {
      translated += c;
    }
  }
  return TextPattern::regex(translated);
}

bool MatchRules::match(const std::string& answer, const std::vector<std::string>& targets) const {
  const std::string own = kept(answer);
  return std::ranges::any_of(targets, [&](const std::string& target) { return kept(target) == own; });
}

std::string MatchRules::kept(const std::string& text) const {
  std::string left = text;
  for (const TextPattern& pattern : regexes_to_ignore) {
    std::vector<ByteRange> found;
    pattern.find(left, found);
    for (auto match = found.rbegin(); match != found.rend(); ++match)
      left.erase(match->begin, match->end - match->begin);
  }
  if (ignore_case) left = chat::to_lower(left);
  std::erase_if(left, [&](unsigned char c) {
    return c < 0x80 &&
           ((ignore_punctuation && std::ispunct(c) != 0) || (ignore_numbers && std::isdigit(c) != 0));
  });
  return left;
}

}  // namespace zoo
