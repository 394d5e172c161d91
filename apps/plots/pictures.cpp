#include "apps/plots/pictures.h"

#include <iostream>

#include "apps/command/terminal.h"
#include "apps/plots/gnuplot.h"
#include "data/base/atomic_file.h"

namespace zoo {
namespace {

constexpr int kWidth = 80;  // if standard output is a pipe or a file

TextStyle text_style() {
  const int width = standard_output_width();
  return {.width = width > 0 ? width : kWidth, .colour = standard_output_has_colours()};
}

}  // namespace

void add_format_flag(Flags& flags, std::string& format) {
  flags.choice("format", format, {"both", "png", "svg", "terminal"},
               "format of the picture files; terminal prints the pictures as text and needs no gnuplot");
}

void show_figure(const Figure& figure, const std::filesystem::path& stem, const std::string& format) {
  if (format == "terminal") {
    std::cout << "\n" << figure.text(text_style());
    return;
  }
  std::cout.flush();
  make_directories(stem.parent_path());
  try {
    for (const std::string kind : {"png", "svg"}) {
      if (format != "both" && format != kind) continue;
      const std::filesystem::path path = stem.string() + "." + kind;
      draw(figure, path);
      std::cerr << "picture: " << path.string() << "\n";
    }
  } catch (const GnuplotMissing& missing) {
    std::cerr << "warning: " << missing.what() << "; --format terminal needs no gnuplot\n";
  }
}

}  // namespace zoo
