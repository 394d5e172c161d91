#include <string>
#include <vector>

#include "apps/verbs/shell/completion.h"
#include "data/base/lines.h"

namespace zoo {
namespace {

constexpr const char* kBegin = R"(# Completes tzoo in bash. Written by 'tzoo completion bash'.

_tzoo() {
  local command=tzoo current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} flag= equals= i
  COMPREPLY=()

  # The verb, and the action of a verb that has several.
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ $i == 1 && ${COMP_WORDS[1]} == help ]] && continue
    case "$command ${COMP_WORDS[i]}" in
      )";

constexpr const char* kMiddle = R"() command+=" ${COMP_WORDS[i]}" ;;
      *) break ;;
    esac
  done

  # The flag whose value is completed. Bash takes "--flag=value" for three words.
  if [[ $current == = ]]; then
    equals=1 flag=$before current=
  elif [[ $before == = ]]; then
    equals=1 flag=${COMP_WORDS[COMP_CWORD-2]}
  elif [[ $before == --* && $current != --* ]]; then
    flag=$before
  fi
  flag=${flag#--} flag=${flag//-/_}

  local words= flags= negations= paths= needs_value=$equals
  case $command in
)";

constexpr const char* kEnd = R"(  esac

  if [[ -z $needs_value && ($current == -* || -z $words$paths) ]]; then
    # '-' and '_' are the same in flags.
    [[ $current == --?* ]] && current=${current#--} && current=--${current//-/_}
    [[ $current == --no* ]] && flags+=" $negations"
    words=$flags paths=
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  if [[ -n $paths ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen "$paths" -- "$current")
  fi
}

complete -F _tzoo tzoo
)";

// Completion of a value, as assignments to the script's variables.
std::string value_assignments(const FlagOutline& flag) {
  std::string text = " words=";
  if (!flag.values.empty()) text += single_quoted(joined(flag.values, " "));
  text += " paths=";
  if (flag.paths == FlagOutline::Paths::files) text += "-f";
  if (flag.paths == FlagOutline::Paths::directories) text += "-d";
  return text;
}

void print_flags(std::ostream& out, const CommandOutline& command) {
  std::vector<std::string> flags, negations, booleans, unlisted;
  for (const FlagOutline& flag : command.flags) {
    if (flag.positional) {
      out << "     " << value_assignments(flag) << "\n";
      continue;
    }
    flags.push_back("--" + flag.name);
    if (flag.boolean) {
      booleans.push_back(flag.name);
      if (flag.negatable) negations.push_back("--no_" + flag.name);
    } else if (flag.values.empty() && flag.paths == FlagOutline::Paths::none) {
      unlisted.push_back(flag.name);
    }
  }
  flags.emplace_back("--help");
  out << "      flags=" << single_quoted(joined(flags, " ")) << "\n"
      << "      negations=" << single_quoted(joined(negations, " ")) << "\n"
      << "      case $flag in\n";
  for (const FlagOutline& flag : command.flags) {
    if (!flag.positional && (!flag.values.empty() || flag.paths != FlagOutline::Paths::none))
      out << "        " << flag.name << ") needs_value=1" << value_assignments(flag) << " ;;\n";
  }
  if (!unlisted.empty()) out << "        " << joined(unlisted, " | ") << ") needs_value=1 words= paths= ;;\n";
  out << "        " << joined(booleans, " | ") << ") [[ -n $equals ]] && words='true false' paths= ;;\n"
      << "      esac\n";
}

void print_command(std::ostream& out, const std::string& name, const CommandOutline& command) {
  out << "    " << single_quoted(name) << ")\n";
  if (command.actions.empty()) {
    print_flags(out, command);
  } else {
    std::vector<std::string> names;
    for (const CommandOutline& action : command.actions) names.push_back(action.name);
    out << "      words=" << single_quoted(joined(names, " ") + " help") << " flags='--help --version'\n";
  }
  out << "      ;;\n";
}

}  // namespace

void print_bash_completion(std::ostream& out, const CommandOutline& tzoo) {
  std::vector<std::string> names;
  const auto commands = commands_below(tzoo);
  for (const CommandOutline* command : commands) names.push_back(single_quoted(command->command));
  out << kBegin << joined(names, " | \\\n      ") << kMiddle;
  print_command(out, tzoo.command, tzoo);
  for (const CommandOutline* command : commands) print_command(out, command->command, *command);
  out << kEnd;
}

}  // namespace zoo
