#pragma once

/// @file
/// Use:
///
///     const zoo::MatchRules rules{.regexes_to_ignore = {zoo::python_pattern("[0-9]+")}};
///     rules.match("a1", {"a"});  // true

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text/text_pattern.h"

namespace zoo {

/// A regular expression of Python's `re`. Throws Error for one that TextPattern does not have, or in which it
/// means something else, such as \w and \b.
TextPattern python_pattern(std::string_view expression);

/// How the exact_match of lm-evaluation-harness compares a written answer with the right ones: what it leaves
/// out of both.
struct MatchRules {
  std::vector<TextPattern> regexes_to_ignore;
  bool ignore_case = false, ignore_punctuation = false, ignore_numbers = false;

  bool match(const std::string& answer, const std::vector<std::string>& targets) const;

 private:
  std::string kept(const std::string& text) const;
};

}  // namespace zoo
