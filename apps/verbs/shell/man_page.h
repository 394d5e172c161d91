#pragma once

#include <ostream>
#include <string_view>

#include "apps/command/outline.h"

namespace zoo {

/// Prints tzoo(1) for `man`, in roff.
void print_man_page(std::ostream& out, const CommandOutline& tzoo, std::string_view version);

}  // namespace zoo
