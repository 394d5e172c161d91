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

/// Prints the verb's help: flags in aligned groups with their defaults, at most paragraph_width() wide.
void print_help(std::ostream& out, const VerbText& verb, const std::deque<FlagData>& flags);

/// Fills the outline with the same data, except name and summary, which come from the list of verbs.
void outline_help(const VerbText& verb, const std::deque<FlagData>& flags, CommandOutline& outline);

}  // namespace zoo
