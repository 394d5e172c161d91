#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/command/outline.h"

namespace zoo {

// What the completion scripts of the three shells have in common.

/// 'text', for bash, zsh and fish alike.
std::string single_quoted(std::string_view text);

/// The first clause of a description, for a list in which each line is short.
std::string first_clause(std::string_view description);

std::string joined(const std::vector<std::string>& words, std::string_view separator);

/// Every command below `root`, however deep, but not `root` itself: "tzoo data", "tzoo data get", …
std::vector<const CommandOutline*> commands_below(const CommandOutline& root);

}  // namespace zoo
