#include "apps/command/terminal.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

#include "apps/command/display_width.h"
#include "apps/command/visible_text.h"
#include "data/base/environment.h"

namespace zoo {
namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int terminal_width(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const int columns = std::atoi(environment("COLUMNS").c_str());
  return columns > 0 ? columns : 80;
}

int standard_output_width() {
  return ::isatty(STDOUT_FILENO) == 1 ? terminal_width(STDOUT_FILENO) : 0;
}

int paragraph_width() {
  constexpr int kNarrowest = 40, kWidest = 100;
  const int width = standard_output_width();
  return width == 0 ? kWidest : std::clamp(width, kNarrowest, kWidest);
}

std::string paragraph(const std::string& text) {
  return standard_output_width() == 0 ? text : wrap(text, paragraph_width());
}

bool standard_output_has_colours() {
  return ::isatty(STDOUT_FILENO) == 1 && environment("TERM") != "dumb" && environment("NO_COLOR").empty();
}

Terminal standard_error() {
  Terminal terminal;
  terminal.out = &raw_standard_error();
  terminal.interactive = ::isatty(STDERR_FILENO) == 1 && environment("TERM") != "dumb";
  terminal.colour = terminal.interactive && environment("NO_COLOR").empty();
  terminal.width = [] { return terminal_width(STDERR_FILENO); };
  terminal.clock = seconds;
  return terminal;
}

}  // namespace zoo
