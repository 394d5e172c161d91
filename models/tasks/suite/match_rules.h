#pragma once

/// @file
/// Use:
///
///     zoo::MatchRules rules{.ignore_case = true};
///     rules.filters.push_back({zoo::python_pattern("#### (-?[0-9.,]+)")});
///     rules.match("So it is #### 42", {"42"});  // true

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text/text_pattern.h"

namespace zoo {

/// A regular expression of Python's `re`. Throws Error for one that TextPattern does not have, or in which it
/// means something else, such as \w and \b.
TextPattern python_pattern(std::string_view expression);

/// How lm-evaluation-harness compares a written answer with the right ones: what its filter `regex` takes of
/// the answer, and what exact_match leaves out of both.
struct MatchRules {
  struct Filter {
    TextPattern pattern;
    std::int64_t group_select = 0;       // which match; below 0 from the end
    std::string fallback = "[invalid]";  // where there is none
  };
  std::vector<Filter> filters;
  std::vector<TextPattern> regexes_to_ignore;
  bool ignore_case = false, ignore_punctuation = false, ignore_numbers = false;

  /// Throws Error where the harness would end, or a pattern matches the empty text.
  bool match(std::string answer, const std::vector<std::string>& targets) const;

 private:
  std::string kept(const std::string& text) const;
};

}  // namespace zoo
