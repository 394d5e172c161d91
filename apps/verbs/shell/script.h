#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zoo {

// What the completion scripts of the three shells have in common.

/// 'text', for bash, zsh and fish alike.
std::string single_quoted(std::string_view text);

/// The first clause of a description, for a list in which each line is short.
std::string first_clause(std::string_view description);

std::string joined(const std::vector<std::string>& words, std::string_view separator);

}  // namespace zoo
