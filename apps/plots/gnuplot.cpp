#include "apps/plots/gnuplot.h"

#include <cctype>
#include <string_view>

#include <unistd.h>

#include "data/base/atomic_file.h"
#include "data/corpora/child_process.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

std::string first_line(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \n");
  return begin == std::string::npos ? "no message" : text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

std::string gnuplot_quote(const std::string& text) {
  // gnuplot drops a leading quote in single quotes and runs text between backquotes in double quotes.
  constexpr std::string_view kPlain = " !#&()*+,-./:;<=>?@[]^_{|}~%";
  std::string quoted = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (std::isalnum(code) != 0 || code >= 0x80 || kPlain.find(letter) != std::string_view::npos) {
      quoted += letter;
    } else {
      for (const int shift : {6, 3, 0})
        quoted += (shift == 6 ? "\\" : "") + std::to_string(code >> shift & 7);
    }
  }
  return quoted + "\"";
}

void gnuplot(const std::string& script, const fs::path& output) {
  // A temporary folder holds gnuplot's script, data and result.
  AtomicDirectory folder(output.string() + ".gnuplot");
  const fs::path picture = folder.path() / output.filename(), script_file = folder.path() / "script.gp";
  write_file(script_file, "OUTPUT = " + gnuplot_quote(picture.string()) + "\n" + script);
  const auto result = run_program({"gnuplot", script_file.string()});
  if (!result)
    throw GnuplotMissing("cannot draw ", output, ": gnuplot is not installed (Debian's package gnuplot-nox)");
  if (result->exit_code != 0 || !fs::exists(picture)) {
    throw Error("cannot draw ", output, ": gnuplot says: ", first_line(result->error_output));
  }
  write_file(output, read_file(picture));
}

}  // namespace zoo
