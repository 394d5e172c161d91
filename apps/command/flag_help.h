#pragma once

#include <deque>
#include <ostream>
#include <string>
#include <vector>

#include "apps/command/flag_data.h"
#include "apps/command/outline.h"

namespace zoo {

/// Help text of a verb, without its flags.
struct VerbText {
  std::string command, summary;
  std::vector<std::string> examples;
};

/// Group of the flags that every verb has, listed last.
inline constexpr const char* kGeneralGroup = "General";

/// Prints the verb's help: flags in aligned groups with their defaults, at most 100 columns wide.
void print_help(std::ostream& out, const VerbText& verb, const std::deque<FlagData>& flags);

/// Fills the outline with the same data, except name and summary, which come from the list of verbs.
void outline_help(const VerbText& verb, const std::deque<FlagData>& flags, CommandOutline& outline);

/// Wraps `text` at kHelpWidth columns; lines after the first start with `indent` spaces, and `column` is the
/// start of the first.
inline constexpr int kHelpWidth = 100;
std::string wrap(const std::string& text, int column, int indent);

}  // namespace zoo
