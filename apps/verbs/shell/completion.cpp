// Scripts that complete `tzoo` in a shell: verbs, flags and flag values. A script holds all words and never
// runs tzoo, which would load LibTorch at each press of TAB.
#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command/flags.h"
#include "apps/command/verbs.h"
#include "apps/command/visible_text.h"
#include "apps/plots/embedded_page.h"
#include "apps/verbs/verbs.h"
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

void print_bash_flags(std::ostream& out, const CommandOutline& command) {
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

void print_bash_command(std::ostream& out, const CommandOutline& command) {
  out << "    " << single_quoted(command.command) << ")\n";
  if (command.actions.empty()) {
    print_bash_flags(out, command);
  } else {
    std::vector<std::string> names;
    for (const CommandOutline& action : command.actions) names.push_back(action.name);
    out << "      words=" << single_quoted(joined(names, " ") + " help") << " flags='--help --version'\n";
  }
  out << "      ;;\n";
}

void print_bash_completion(std::ostream& out, const CommandOutline& tzoo) {
  std::vector<std::string> names;
  const auto commands = commands_below(tzoo);
  for (const CommandOutline* command : commands) names.push_back(single_quoted(command->command));
  std::ostringstream cases;
  print_bash_command(cases, tzoo);
  for (const CommandOutline* command : commands) print_bash_command(cases, *command);
  using embedded::replaced;
  const std::string script =
      replaced(embedded::kBashCompletion, "@commands@", joined(names, " | \\\n      "));
  out << replaced(script, "@cases@\n", cases.str());
}

// Escapes the separators of _arguments and _describe.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    if (letter == ':' || letter == '[' || letter == ']' || letter == '\\') result += '\\';
    result += letter;
  }
  return result;
}

// Name of the completion function: _tzoo_fill_mask for "tzoo fill-mask".
std::string function_of(const std::string& command) {
  std::string name = "_" + command;
  std::replace_if(
      name.begin(), name.end(), [](char letter) { return letter == ' ' || letter == '-'; }, '_');
  return name;
}

// ":message:action" of a value.
std::string value_of(const FlagOutline& flag) {
  std::string paths = flag.paths == FlagOutline::Paths::none ? "" : "_files";
  if (flag.paths == FlagOutline::Paths::directories) paths += " -/";
  const std::string message = ":" + escaped(flag.positional ? flag.name : flag.value_name) + ":";
  const std::string words = joined(flag.values, " ");
  if (words.empty()) return message + (paths.empty() ? " " : paths);
  return message + (paths.empty() ? "(" + words + ")" : "{compadd - " + words + "; " + paths + "}");
}

void print_zsh_flags(std::ostream& out, const CommandOutline& command) {
  const auto print = [&out](const std::string& specification) {
    out << " \\\n    " << single_quoted(specification);
  };
  out << "  _arguments";
  for (const FlagOutline& flag : command.flags) {
    const std::string often = flag.repeatable ? "*" : "";
    const std::string clause = flag.description.substr(0, flag.description.find(';'));
    const std::string description = "[" + escaped(clause) + "]";
    if (flag.positional) {
      print((flag.repeatable ? "*" : ":") + value_of(flag));
    } else if (flag.boolean) {
      print("--" + flag.name + description);
      if (flag.negatable) print("--no_" + flag.name + "[not --" + flag.name + "]");
    } else {
      print(often + "--" + flag.name + "=" + description + value_of(flag));
    }
  }
  print("--help[show all flags]");
  out << "\n";
}

void print_zsh_actions(std::ostream& out, const CommandOutline& command) {
  out << "  local context state state_descr line\n"
         "  local -a actions\n"
         "  typeset -A opt_args\n"
         "  _arguments -C '--help[list the verbs]' '1: :->action' '*:: :->rest'\n"
         "  case $state in\n"
         "    action)\n"
         "      actions=(\n";
  for (const CommandOutline& action : command.actions)
    out << "        " << single_quoted(action.name + ":" + escaped(action.summary)) << "\n";
  out << "      )\n"
         "      _describe verb actions\n"
         "      ;;\n"
         "    rest)\n"
         "      case $line[1] in\n";
  for (const CommandOutline& action : command.actions)
    out << "        " << action.name << ") " << function_of(action.command) << " ;;\n";
  out << "        help) " << function_of(command.command) << " ;;\n"
      << "      esac\n"
         "      ;;\n"
         "  esac\n";
}

void print_zsh_function(std::ostream& out, const CommandOutline& command) {
  out << "\n" << function_of(command.command) << "() {\n";
  command.actions.empty() ? print_zsh_flags(out, command) : print_zsh_actions(out, command);
  out << "}\n";
}

void print_zsh_completion(std::ostream& out, const CommandOutline& tzoo) {
  out << "#compdef tzoo\n"
         "# Completes tzoo in zsh. Written by 'tzoo completion zsh'.\n";
  for (const CommandOutline* command : commands_below(tzoo)) print_zsh_function(out, *command);
  print_zsh_function(out, tzoo);
  // The file works when it is sourced and as an autoloaded function from $fpath, where its text is the body
  // of the first call.
  out << "\nif [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then\n"
         "  _tzoo \"$@\"\n"
         "else\n"
         "  compdef _tzoo tzoo\n"
         "fi\n";
}

}  // namespace

int run_completion(const Arguments& arguments) {
  std::string shell;
  Flags flags(
      arguments.command,
      "Prints a script that completes the verbs, flags and values of tzoo in a shell. An installed tzoo "
      "has it in the shell's folder of completions already.");
  flags.positional("shell", shell, "the shell that reads the script: bash or zsh",
                   {.choices = {"bash", "zsh"}, .required = true});
  flags.example("source <(tzoo completion bash)");
  if (!flags.parse(arguments)) return 0;
  (shell == "bash" ? print_bash_completion : print_zsh_completion)(std::cout, outline_of_command());
  return 0;
}

}  // namespace zoo
