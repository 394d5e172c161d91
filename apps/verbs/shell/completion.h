#pragma once

#include <ostream>

#include "apps/command/outline.h"

namespace zoo {

// Each writes a script that completes `tzoo` in its shell: verbs, flags and flag values. The script holds all
// words and never runs tzoo, which would load LibTorch at each press of TAB.

void print_bash_completion(std::ostream& out, const CommandOutline& tzoo);
void print_zsh_completion(std::ostream& out, const CommandOutline& tzoo);
void print_fish_completion(std::ostream& out, const CommandOutline& tzoo);

}  // namespace zoo
