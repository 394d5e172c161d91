#include "apps/verbs/shell/completion.h"

#include <iostream>

#include "apps/command/flags.h"
#include "apps/verbs/verbs.h"

namespace zoo {

std::string single_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char letter : text) {
    // Close the quotes, add an escaped quote, open them again.
    if (letter == '\'') {
      quoted += "'\\''";
    } else {
      quoted += letter;
    }
  }
  return quoted + "'";
}

std::string first_clause(std::string_view description) {
  return std::string(description.substr(0, description.find(';')));
}

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
  const auto print = shell == "bash" ? print_bash_completion : print_zsh_completion;
  print(std::cout, outline_of_command());
  return 0;
}

}  // namespace zoo
