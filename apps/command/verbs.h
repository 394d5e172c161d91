#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// A flag or argument as in the help, with the completions of its value.
struct FlagOutline {
  enum class Paths { none, files, directories };

  std::string name;         // "max_iters"
  std::string usage;        // "--max_iters N"
  std::string description;  // includes the default or "(required)"
  bool positional = false, boolean = false, repeatable = false;
  bool negatable = false;           // a boolean that --no_NAME switches off
  bool of_every_verb = false;       // --config, --dump_config
  std::string value_name;           // "N"; empty for a boolean
  std::vector<std::string> values;  // the choices, or suggestions
  Paths paths = Paths::none;        // completed in addition to `values`
};

/// A command's interface, from its declarations: source of the completion scripts and the man page. A command
/// has either flags or subcommands.
struct CommandOutline {
  std::string command;      // "tzoo data make"
  std::string name;         // "make"
  std::string summary;      // its line in the list of commands
  std::string description;  // the paragraph of its help
  std::vector<std::string> examples;
  std::vector<FlagOutline> flags;       // in the order of the help's groups
  std::vector<CommandOutline> actions;  // subcommands; for `tzoo` the verbs
};

/// All commands below `root` at any depth, without `root`: "tzoo data", "tzoo data get", …
std::vector<const CommandOutline*> commands_below(const CommandOutline& root);

}  // namespace zoo
