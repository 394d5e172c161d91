#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zoo {

// Shared by the completion scripts of the three shells.

/// Quotes 'text' for bash, zsh and fish.
std::string single_quoted(std::string_view text);

/// First clause of a description, for short lines in a list.
std::string first_clause(std::string_view description);

std::string joined(const std::vector<std::string>& words, std::string_view separator);

}  // namespace zoo
