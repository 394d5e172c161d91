#pragma once

#include <span>
#include <string>
#include <string_view>

#include "apps/command/arguments.h"

namespace zoo {

/// A verb of the command, or an action of a verb that has several.
struct Verb {
  std::string_view name, group, summary;
  int (*run)(const Arguments&);  // the exit code
};

/// Runs the verb that the first word names with the words after it. No word, `--help` or `help` print the
/// list of verbs on std::cout, `help VERB` the verb's own help. Where the arguments ask for an outline, every
/// verb adds its own to it and none runs. Throws UsageError for an unknown verb, naming the nearest.
int dispatch(const Arguments& arguments, std::string_view summary, std::span<const Verb> verbs);

}  // namespace zoo
