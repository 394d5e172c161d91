#include <algorithm>
#include <string>

#include "apps/verbs/shell/completion.h"
#include "data/base/lines.h"

namespace zoo {
namespace {

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

void print_flags(std::ostream& out, const CommandOutline& command) {
  const auto print = [&out](const std::string& specification) {
    out << " \\\n    " << single_quoted(specification);
  };
  out << "  _arguments";
  for (const FlagOutline& flag : command.flags) {
    const std::string often = flag.repeatable ? "*" : "";
    const std::string description = "[" + escaped(first_clause(flag.description)) + "]";
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

void print_actions(std::ostream& out, const CommandOutline& command) {
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

void print_function(std::ostream& out, const CommandOutline& command) {
  out << "\n" << function_of(command.command) << "() {\n";
  command.actions.empty() ? print_flags(out, command) : print_actions(out, command);
  out << "}\n";
}

}  // namespace

void print_zsh_completion(std::ostream& out, const CommandOutline& tzoo) {
  out << "#compdef tzoo\n"
         "# Completes tzoo in zsh. Written by 'tzoo completion zsh'.\n";
  for (const CommandOutline* command : commands_below(tzoo)) print_function(out, *command);
  print_function(out, tzoo);
  // The file works when it is sourced and as an autoloaded function from $fpath, where its text is the body
  // of the first call.
  out << "\nif [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then\n"
         "  _tzoo \"$@\"\n"
         "else\n"
         "  compdef _tzoo tzoo\n"
         "fi\n";
}

}  // namespace zoo
