#include <string>
#include <vector>

#include "apps/verbs/shell/completion.h"
#include "data/base/lines.h"

namespace zoo {
namespace {

constexpr const char* kBegin = R"(# Completes tzoo in fish. Written by 'tzoo completion fish'.

set -g __tzoo_commands \
    )";

constexpr const char* kFunctions = R"(

# The command before the cursor, such as "tzoo data make".
function __tzoo_command
    set -l words (commandline -opc)
    set -e words[1]
    test "$words[1]" = help; and set -e words[1]
    set -l command tzoo
    for word in $words
        contains -- "$command $word" $__tzoo_commands; or break
        set command "$command $word"
    end
    echo $command
end

function __tzoo_at
    test (__tzoo_command) = "$argv"
end

complete -c tzoo -f
complete -c tzoo -l help -d 'show the verbs, or the flags of a verb'
complete -c tzoo -n '__tzoo_at tzoo' -l version -d 'print the version'
complete -c tzoo -n '__tzoo_at tzoo' -a help -d 'show the help of a verb'
)";

// Completion of a value. -x: only the words; -F: files too.
std::string value_of(const FlagOutline& flag) {
  std::vector<std::string> words = flag.values;
  if (flag.paths == FlagOutline::Paths::directories) words.emplace_back("(__fish_complete_directories)");
  std::string text;
  if (flag.paths == FlagOutline::Paths::files) {
    text = flag.positional ? " -F" : " -r -F";
  } else if (!flag.positional) {
    text = " -x";
  }
  if (!words.empty()) text += " -a " + single_quoted(joined(words, " "));
  return text;
}

void print_flags(std::ostream& out, const CommandOutline& command) {
  const std::string begin = "complete -c tzoo -n '__tzoo_at " + command.command + "'";
  for (const FlagOutline& flag : command.flags) {
    const std::string description = " -d " + single_quoted(first_clause(flag.description));
    if (flag.positional) {
      out << begin << value_of(flag) << description << "\n";
    } else if (flag.boolean) {
      out << begin << " -l " << flag.name << description << "\n";
      if (flag.negatable)
        out << begin << " -l no_" << flag.name << " -d " << single_quoted("not --" + flag.name) << "\n";
    } else {
      out << begin << " -l " << flag.name << value_of(flag) << description << "\n";
    }
  }
}

void print_actions(std::ostream& out, const CommandOutline& command) {
  for (const CommandOutline& action : command.actions)
    out << "complete -c tzoo -n '__tzoo_at " << command.command << "' -a " << action.name << " -d "
        << single_quoted(action.summary) << "\n";
}

void print_command(std::ostream& out, const CommandOutline& command) {
  command.actions.empty() ? print_flags(out, command) : print_actions(out, command);
}

}  // namespace

void print_fish_completion(std::ostream& out, const CommandOutline& tzoo) {
  std::vector<std::string> names;
  for (const CommandOutline* command : commands_below(tzoo)) names.push_back(single_quoted(command->command));
  out << kBegin << joined(names, " \\\n    ") << kFunctions;
  print_command(out, tzoo);
  for (const CommandOutline* command : commands_below(tzoo)) print_command(out, *command);
}

}  // namespace zoo
