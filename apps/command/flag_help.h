#pragma once

#include <deque>
#include <ostream>
#include <string>
#include <vector>

#include "apps/command/flag_data.h"
#include "apps/command/outline.h"

namespace zoo {

/// What help says about a verb beside its flags.
struct VerbText {
  std::string command, summary;
  std::vector<std::string> examples;
};

/// Where the flags that every verb has are listed: the last group.
inline constexpr const char* kGeneralGroup = "General";

/// Writes the verb's help: flags in groups, aligned, with their defaults, at most 100 columns wide.
void print_help(std::ostream& out, const VerbText& verb, const std::deque<FlagData>& flags);

/// The same as data: everything but the outline's name and summary, which the list of verbs gives.
void outline_help(const VerbText& verb, const std::deque<FlagData>& flags, CommandOutline& outline);

/// Words of `text` in lines of at most kHelpWidth columns; lines after the first begin with `indent` blanks,
/// and `column` is where the first begins.
inline constexpr int kHelpWidth = 100;
std::string wrap(const std::string& text, int column, int indent);

}  // namespace zoo
