#include <iostream>

#include "apps/command/flags.h"
#include "apps/command/version.h"
#include "apps/verbs/shell/man_page.h"
#include "apps/verbs/verbs.h"

namespace zoo {

int run_man(const Arguments& arguments) {
  Flags flags(arguments.command,
              "Prints the manual page of tzoo, in roff. An installed tzoo shows it with 'man tzoo'.");
  flags.example("tzoo man | man -l -");
  if (!flags.parse(arguments)) return 0;
  print_man_page(std::cout, outline_of_command(), version());
  return 0;
}

}  // namespace zoo
