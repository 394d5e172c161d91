#pragma once

#include <string>
#include <vector>

namespace zoo {

/// A flag or argument in the words of the help, with what a shell can complete for its value.
struct FlagOutline {
  enum class Paths { none, files, directories };

  std::string name;         // "max_iters"
  std::string usage;        // "--max_iters N"
  std::string description;  // with its default or "(required)"
  bool positional = false, boolean = false, repeatable = false;
  bool of_every_verb = false;       // --config, --dump_config
  std::string value_name;           // "N"; empty for a boolean
  std::vector<std::string> values;  // the choices, or names that are accepted beside other values
  Paths paths = Paths::none;        // completed beside `values`
};

/// What a command offers, as its tables declare it: the source of the completion scripts and the man page. A
/// command has either flags or further commands.
struct CommandOutline {
  std::string command;      // "tzoo data make"
  std::string name;         // "make"
  std::string summary;      // its line in the list of verbs
  std::string description;  // the paragraph of its help
  std::vector<std::string> examples;
  std::vector<FlagOutline> flags;       // in the order of the help's groups
  std::vector<CommandOutline> actions;  // of `tzoo` itself, its verbs
};

/// Every command below `root`, however deep, but not `root` itself: "tzoo data", "tzoo data get", …
std::vector<const CommandOutline*> commands_below(const CommandOutline& root);

/// The commands that have flags, in order: `root` itself or those below it.
std::vector<const CommandOutline*> runnable_commands(const CommandOutline& root);

}  // namespace zoo
