#include <array>
#include <iostream>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/command/verbs.h"
#include "apps/verbs/verbs.h"
#include "tokenizer/text/utf8.h"

namespace zoo::embedded {
extern const std::string_view kManPageEnd;  // man_end.roff
}

namespace zoo {
namespace {

constexpr std::array<std::pair<char32_t, const char*>, 8> kSpecial{
    {{U'\\', "\\(rs"},
     {U'-', "\\-"},
     {U'\'', "\\(aq"},
     {U'`', "\\(ga"},
     {U'^', "\\(ha"},
     {U'~', "\\(ti"},
     {U'"', "\\(dq"},
     {U'|', "|\\:"}}};  // a line may end after it

std::string escaped(char32_t letter) {
  for (const auto& [special, text] : kSpecial)
    if (special == letter) return text;
  if (letter < 0x80) return {static_cast<char>(letter)};
  // By code point: groff reads bytes as Latin 1.
  return format_text("\\[u%04X]", static_cast<unsigned>(letter));
}

// Escapes one line of UTF-8 text for a man page: roff reads no request in it, and '-' and quotes can be
// copied into a shell.
std::string roff(std::string_view text) {
  // A leading dot would make the line a request.
  std::string result = text.starts_with('.') ? "\\&" : "";
  for (std::size_t at = 0; at < text.size();) result += escaped(next_code_point(text, at));
  return result;
}

// Formats "--max_iters N": the name bold, the value italic.
std::string styled(const FlagOutline& flag) {
  const std::size_t blank = flag.usage.find(' ');
  if (flag.positional) return "\\fI" + roff(flag.usage) + "\\fR";
  const std::string name = "\\fB" + roff(flag.usage.substr(0, blank)) + "\\fR";
  if (blank == std::string::npos) return name;
  return name + " \\fI" + roff(flag.usage.substr(blank + 1)) + "\\fR";
}

void print_flag(std::ostream& out, const FlagOutline& flag) {
  out << ".TP\n" << styled(flag) << "\n" << roff(flag.description) << "\n";
}

void print_man_page(std::ostream& out, const CommandOutline& tzoo, std::string_view version) {
  auto commands = commands_below(tzoo);
  std::erase_if(commands, [](const CommandOutline* command) { return !command->actions.empty(); });
  out << ".\\\" Written by 'tzoo man'.\n"
      << ".TH TZOO 1 \"\" \"tzoo " << version << "\" \"User Commands\"\n"
      << ".SH NAME\ntzoo \\- train, run, inspect and export transformer models\n"
      << ".SH SYNOPSIS\n.B tzoo\n.I VERB\n.RI [ flags ]\n.br\n.B tzoo\n.I VERB\n.B \\-\\-help\n"
      << ".SH DESCRIPTION\n"
      << roff(tzoo.description) << "\n"
      << "Results go to standard output, progress and errors to standard error.\n";
  for (const CommandOutline& verb : tzoo.actions)
    out << ".TP\n\\fB" << roff(verb.name) << "\\fR\n" << roff(verb.summary) << "\n";
  out << ".SH VERBS\n";
  for (const CommandOutline* command : commands) {
    out << ".SS " << roff(command->command);
    for (const FlagOutline& flag : command->flags)
      if (flag.positional) out << " " << roff(flag.usage);
    out << "\n" << roff(command->description) << "\n";
    for (const FlagOutline& flag : command->flags)
      if (!flag.of_every_verb) print_flag(out, flag);
  }
  out << ".SH FLAGS OF EVERY VERB\n"
         "A flag may be written with \\- in place of _, and as\n.BI \\-\\-flag= value\n.PP\n";
  for (const FlagOutline& flag : commands.front()->flags)
    if (flag.of_every_verb) print_flag(out, flag);
  out << ".TP\n\\fB\\-\\-help\\fR, \\fB\\-h\\fR\nshow the flags of the verb\n"
      << ".SH EXAMPLES\n.nf\n";
  for (const CommandOutline* command : commands)
    for (const std::string& example : command->examples) out << roff(example) << "\n";
  out << ".fi\n" << embedded::kManPageEnd;
}

}  // namespace

int run_man(const Arguments& arguments) {
  Flags flags(arguments.command,
              "Prints the manual page of tzoo, in roff. An installed tzoo shows it with 'man tzoo'.");
  flags.example("tzoo man | man -l -");
  if (!flags.parse(arguments)) return 0;
  print_man_page(std::cout, outline_of_command(), version());
  return 0;
}

}  // namespace zoo
