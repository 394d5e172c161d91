#pragma once

#include <ostream>

#include "apps/command/outline.h"

namespace zoo {

// Each writes a script that completes `tzoo` in its shell: verbs, flags, and values of flags. The script
// holds all words itself and never runs tzoo, which would load LibTorch at each press of the TAB key.

void print_bash_completion(std::ostream& out, const CommandOutline& tzoo);
void print_zsh_completion(std::ostream& out, const CommandOutline& tzoo);
void print_fish_completion(std::ostream& out, const CommandOutline& tzoo);

}  // namespace zoo
