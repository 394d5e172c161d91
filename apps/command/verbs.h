#pragma once

#include <span>
#include <string_view>

#include "apps/command/arguments.h"

namespace zoo {

/// A verb of the command, or an action of a verb with several.
struct Verb {
  std::string_view name, group, summary;
  int (*run)(const Arguments&);  // returns the exit code
};

/// Runs the verb named by the first word with the remaining words. No word, `--help` or `help` print the list
/// of verbs on std::cout, `help VERB` the verb's help. If the arguments ask for an outline, every verb adds
/// its outline and none runs. Throws UsageError for an unknown verb, naming the nearest.
int dispatch(const Arguments& arguments, std::string_view summary, std::span<const Verb> verbs);

/// The project's version, "0.1.0".
const char* version();

}  // namespace zoo
