#include "apps/plots/gnuplot.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>

#include "apps/command/output.h"
#include "data/base/atomic_file.h"
#include "data/corpora/child_process.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

std::string first_line(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \n");
  return begin == std::string::npos ? "no message" : text.substr(begin, text.find('\n', begin) - begin);
}

// Distinguishable on white and with colour blindness.
constexpr std::array<std::string_view, 8> kColours{"#1f5fa8", "#c0392b", "#2e8b57", "#d98200",
                                                   "#7d4ba0", "#00838f", "#8d5524", "#555555"};

// gnuplot interprets a tic label as a number format.
std::string as_format(const std::string& label) {
  std::string format;
  for (const char letter : label) format += letter == '%' ? std::string("%%") : std::string(1, letter);
  return format;
}

}  // namespace

std::string gnuplot_quote(const std::string& text) {
  // gnuplot drops a leading quote in single quotes and runs text between backquotes in double quotes.
  constexpr std::string_view kPlain = " !#&()*+,-./:;<=>?@[]^_{|}~%";
  std::string quoted = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    const bool plain = std::isalnum(code) != 0 || code >= 0x80 || kPlain.find(letter) != kPlain.npos;
    quoted += plain ? std::string(1, letter) : format_text("\\%03o", code);
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
  if (result->exit_code != 0 || !fs::exists(picture))
    throw Error("cannot draw ", output, ": gnuplot says: ", first_line(result->error_output));
  write_file(output, read_file(picture));
}

std::string colour(std::size_t group) { return std::string(kColours[group % kColours.size()]); }

std::string number_text(double value) { return std::isfinite(value) ? format_text("%.9g", value) : "NaN"; }

std::string frame(const Axes& axes) {
  std::string script =
      "set border 3 lc rgb '#808080'\nset tics nomirror out scale 0.6 textcolor rgb '#303030'\n";
  script += "set format '%g'\n";  // gnuplot's default begins with a space for a sign
  script += "set title " + gnuplot_quote(axes.title) + "\n";
  if (!axes.x.empty()) script += "set xlabel " + gnuplot_quote(axes.x) + "\n";
  if (!axes.y.empty()) script += "set ylabel " + gnuplot_quote(axes.y) + "\n";
  if (axes.log_x) script += "set logscale x\n";
  if (axes.log_y) script += "set logscale y\n";
  return script;
}

std::string tics(const std::string& axis, const std::vector<std::string>& labels) {
  if (labels.empty()) return "";
  const auto longest = std::ranges::max_element(labels, {}, &std::string::size);
  // Many long labels are vertical; a few are readable slanted.
  const bool upright = labels.size() > (longest->size() > 10 ? 5 : 12) && longest->size() > 3;
  const bool slanted = longest->size() > 10 && !upright;
  std::string script = "set " + axis + "tics scale 0 ";
  if (axis == "x" && (slanted || upright)) script += upright ? "rotate by 90 right " : "rotate by -25 ";
  for (std::size_t i = 0; i < labels.size(); ++i)
    script += (i > 0 ? ", " : "(") + gnuplot_quote(as_format(labels[i])) + " " + std::to_string(i);
  return script + ")\n";
}

std::string number_tics(const std::string& axis, const std::vector<double>& numbers) {
  std::string script = "set " + axis + "tics ";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::string number = number_text(numbers[i]);
    script += (i > 0 ? ", " : "(") + gnuplot_quote(number) + " " + number;
  }
  return script + ")\n";
}

}  // namespace zoo
