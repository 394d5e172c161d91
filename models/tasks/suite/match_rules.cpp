#include "models/tasks/suite/match_rules.h"

#include <algorithm>
#include <cctype>

#include "data/base/error.h"
#include "tokenizer/jinja/python_text.h"

namespace zoo {
namespace {

std::string filtered(const std::string& text, const MatchRules::Filter& filter) {
  const std::vector<std::vector<ByteRange>> found = filter.pattern.captures(text);
  for (const std::vector<ByteRange>& groups : found)  // re.findall() has empty ones at other places
    if (groups[0].begin == groups[0].end)
      throw Error("a regular expression of the task matches the empty text, which is not supported");
  if (found.empty()) return filter.fallback;
  const std::int64_t index = filter.group_select + (filter.group_select < 0 ? std::ssize(found) : 0);
  if (index < 0 || index >= std::ssize(found))
    throw Error("group_select is ", filter.group_select, ", of ", found.size(), " matches in '", text, "'");
  // The whole match if there are no groups, the only group, or the first one that is not empty.
  const std::vector<ByteRange>& groups = found[static_cast<std::size_t>(index)];
  std::string chosen;
  for (std::size_t i = groups.size() > 1 ? 1 : 0; i < groups.size() && chosen.empty(); ++i)
    chosen = text.substr(groups[i].begin, groups[i].end - groups[i].begin);
  if (chosen.empty() && groups.size() > 2) chosen = filter.fallback;
  return chat::stripped(chosen, chat::Side::both);
}

}  // namespace

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
  return TextPattern::regex(translated, /*captures=*/true);
}

bool MatchRules::match(std::string answer, const std::vector<std::string>& targets) const {
  for (const Filter& filter : filters) answer = filtered(answer, filter);
  answer = kept(answer);
  return std::ranges::any_of(targets, [&](const std::string& target) { return kept(target) == answer; });
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
