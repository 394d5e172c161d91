#include "data/corpora/kjv.h"

#include <algorithm>

#include "data/base/error.h"
#include "data/corpora/child_process.h"

namespace zoo {
namespace {

constexpr const char* kInstall = "install it with: apt-get install bible-kjv";

// Words are one space apart: the source has three stray blanks.
void append_words(std::string_view text, std::string& out) {
  const std::size_t start = out.size();
  for (const char c : text) {
    const bool repeated = c == ' ' && (out.size() == start || out.back() == ' ');
    if (!repeated) out += c;
  }
  if (out.size() > start && out.back() == ' ') out.pop_back();
  out += '\n';
}

}  // namespace

std::string lay_out_kjv(std::string_view printed) {
  std::string text;
  while (!printed.empty()) {
    const std::size_t end = std::min(printed.find('\n'), printed.size());
    const std::string_view line = printed.substr(0, end);
    printed.remove_prefix(std::min(end + 1, printed.size()));
    if (line.empty()) continue;
    if (line[0] != ' ') {
      if (!text.empty()) text += '\n';
      append_words(line, text);
      text += '\n';
    } else {
      const std::size_t words = line.find_first_not_of(" 0123456789");
      if (words != std::string_view::npos) append_words(line.substr(words), text);
    }
  }
  return text;
}

std::string extract_kjv() {
  // -l: longer than every verse, so that COLUMNS has no say; -p: not the data file of the current folder.
  const auto result = run_program({"bible", "-p", "/usr/lib/", "-l", "1000000", "gen1:1-rev22:21"});
  if (!result) throw Error("the corpus kjv needs the program 'bible', which is not installed; ", kInstall);
  if (result->exit_code != 0) {
    throw Error("the corpus kjv: the program 'bible' failed: ", result->reason(), "; ", kInstall);
  }
  return lay_out_kjv(result->output);
}

}  // namespace zoo
