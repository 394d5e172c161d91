#include <array>
#include <iostream>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/command/flags.h"
#include "apps/command/outline.h"
#include "apps/command/output.h"
#include "apps/command/version.h"
#include "apps/verbs/verbs.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

constexpr std::array<std::pair<char32_t, const char*>, 7> kSpecial{{{U'\\', "\\(rs"},
                                                                    {U'-', "\\-"},
                                                                    {U'\'', "\\(aq"},
                                                                    {U'`', "\\(ga"},
                                                                    {U'^', "\\(ha"},
                                                                    {U'~', "\\(ti"},
                                                                    {U'"', "\\(dq"}}};

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

constexpr const char* kExitStatus = R"(.SH EXIT STATUS
.TP
.B 0
The command did what it was asked to.
.TP
.B 1
It failed; one line that begins with
.B error:
on standard error says why.
.TP
.B 2
It was called with an unknown verb or flag, with a value that the flag does not accept, or with flags that do not
go together or that the model has no use for.
.TP
.BR 130 ", " 143
A training was stopped by Ctrl-C, SIGTERM or SIGHUP. It saved a checkpoint first, from which
.B tzoo train \-\-init_from resume
goes on.
)";

constexpr const char* kEnvironment = R"(.SH ENVIRONMENT
.TP
.B ZOO_KERNELS
The processor instructions that the kernels of training and inference use:
.BR amx_bf16 ", " avx512_bf16 ", " avx512 ", " avx2 " or " portable .
Without it, the best that the processor has. One that it lacks is an error.
.TP
.BR GOMP_SPINCOUNT ", " OMP_WAIT_POLICY
How threads wait for one another, as in every OpenMP program. Without them tzoo lets its threads sleep
soon while other programs want the processors.
.TP
.B TZOO_API_KEY
The key that requests to
.B tzoo serve
need, where no flag gives one.
.TP
.B TZOO_DATA_DIR
Folder of the corpora that
.B tzoo data get
keeps. Without it
.I $XDG_CACHE_HOME/tzoo
or
.IR \(ti/.cache/tzoo .
.TP
.B NO_COLOR
Not empty: no colours on terminals.
)";

constexpr const char* kFiles = R"(.SH FILES
.TP
.I RUN/run_config.json
Every flag of the training
.IR RUN .
.TP
.I RUN/metrics.jsonl
Its losses and speed, a JSON object for each logged update.
.TP
.I RUN/loss.png
The curve of its losses, where gnuplot is installed.
.TP
.IR RUN/checkpoints/step\-N/ ", " RUN/best/ ", " RUN/final/
Its checkpoints, each a Hugging Face model directory.
.TP
.I \(ti/.cache/tzoo/
Corpora that were fetched.
)";

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

void print_verbs(std::ostream& out, const std::vector<const CommandOutline*>& commands) {
  out << ".SH VERBS\n";
  for (const CommandOutline* command : commands) {
    out << ".SS " << roff(command->command);
    for (const FlagOutline& flag : command->flags)
      if (flag.positional) out << " " << roff(flag.usage);
    out << "\n" << roff(command->description) << "\n";
    for (const FlagOutline& flag : command->flags)
      if (!flag.of_every_verb) print_flag(out, flag);
  }
}

void print_flags_of_every_verb(std::ostream& out, const CommandOutline& any) {
  out << ".SH FLAGS OF EVERY VERB\n"
         "A flag may be written with \\- in place of _, and as\n.BI \\-\\-flag= value\n.PP\n";
  for (const FlagOutline& flag : any.flags)
    if (flag.of_every_verb) print_flag(out, flag);
  out << ".TP\n\\fB\\-\\-help\\fR, \\fB\\-h\\fR\nshow the flags of the verb\n";
}

void print_examples(std::ostream& out, const std::vector<const CommandOutline*>& commands) {
  out << ".SH EXAMPLES\n.nf\n";
  for (const CommandOutline* command : commands)
    for (const std::string& example : command->examples) out << roff(example) << "\n";
  out << ".fi\n";
}

// Prints tzoo(1) for `man`, in roff.
void print_man_page(std::ostream& out, const CommandOutline& tzoo, std::string_view version) {
  const auto commands = runnable_commands(tzoo);
  out << ".\\\" Written by 'tzoo man'.\n"
      << ".TH TZOO 1 \"\" \"tzoo " << version << "\" \"User Commands\"\n"
      << ".SH NAME\ntzoo \\- train, run, inspect and export transformer models\n"
      << ".SH SYNOPSIS\n.B tzoo\n.I VERB\n.RI [ flags ]\n.br\n.B tzoo\n.I VERB\n.B \\-\\-help\n"
      << ".SH DESCRIPTION\n"
      << roff(tzoo.description) << "\n"
      << "Results go to standard output, progress and errors to standard error.\n";
  for (const CommandOutline& verb : tzoo.actions)
    out << ".TP\n\\fB" << roff(verb.name) << "\\fR\n" << roff(verb.summary) << "\n";
  print_verbs(out, commands);
  print_flags_of_every_verb(out, *commands.front());
  print_examples(out, commands);
  out << kExitStatus << kEnvironment << kFiles;
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
