#pragma once

#include <ostream>
#include <string>
#include <string_view>

#include "apps/command/outline.h"

namespace zoo {

// Shared by the completion scripts of both shells.

/// Quotes 'text' for bash and zsh.
std::string single_quoted(std::string_view text);

/// First clause of a description, for short lines in a list.
std::string first_clause(std::string_view description);

// Each writes a script that completes `tzoo` in its shell: verbs, flags and flag values. The script holds all
// words and never runs tzoo, which would load LibTorch at each press of TAB.

void print_bash_completion(std::ostream& out, const CommandOutline& tzoo);
void print_zsh_completion(std::ostream& out, const CommandOutline& tzoo);

}  // namespace zoo
