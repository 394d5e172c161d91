#include <string>
#include <vector>

#include "apps/verbs/shell/completion.h"
#include "data/base/lines.h"

namespace zoo::embedded {
extern const std::string_view kBashCompletion;  // completion.bash.in
}

namespace zoo {
namespace {

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
  // The script has a place for the names of the commands and one for their cases.
  constexpr std::string_view kNames = "@commands@", kCases = "@cases@\n";
  const std::string_view script = embedded::kBashCompletion;
  const std::size_t names_at = script.find(kNames), cases_at = script.find(kCases);
  const std::size_t middle = names_at + kNames.size();
  out << script.substr(0, names_at) << joined(names, " | \\\n      ")
      << script.substr(middle, cases_at - middle);
  print_command(out, tzoo.command, tzoo);
  for (const CommandOutline* command : commands) print_command(out, command->command, *command);
  out << script.substr(cases_at + kCases.size());
}

}  // namespace zoo
