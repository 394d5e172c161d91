#include "apps/command/terminal.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include "apps/command/visible_text.h"
#include "data/base/environment.h"
#include "data/base/lines.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

using Range = std::pair<char32_t, char32_t>;

// Unicode blocks: wcwidth() would be exact but supports only the locale's encoding.
constexpr Range kCombining[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},
                                {0x064B, 0x065F}, {0x1AB0, 0x1AFF}, {0x200B, 0x200F},
                                {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};
constexpr Range kWide[] = {{0x1100, 0x115F}, {0x2E80, 0x303E},   {0x3041, 0xA4CF},
                           {0xAC00, 0xD7A3}, {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
                           {0xFF00, 0xFF60}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};

int columns_of(char32_t code) {
  const auto has_code = [code](const Range& range) { return range.first <= code && code <= range.second; };
  if (std::ranges::any_of(kCombining, has_code)) return 0;
  return std::ranges::any_of(kWide, has_code) ? 2 : 1;
}

// Columns of the terminal at `descriptor`, else $COLUMNS, else 80.
int terminal_width(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const int columns = std::atoi(environment("COLUMNS").c_str());
  return columns > 0 ? columns : 80;
}

bool is_for_people(int descriptor) { return ::isatty(descriptor) == 1 && environment("TERM") != "dumb"; }

bool allows_colours(int descriptor) { return is_for_people(descriptor) && environment("NO_COLOR").empty(); }

}  // namespace

int standard_output_width() { return ::isatty(STDOUT_FILENO) == 1 ? terminal_width(STDOUT_FILENO) : 0; }

int paragraph_width() {
  constexpr int kNarrowest = 40, kWidest = 100;
  const int width = standard_output_width();
  return width == 0 ? kWidest : std::clamp(width, kNarrowest, kWidest);
}

std::string paragraph(const std::string& text) {
  return (standard_output_width() == 0 ? text : wrap(text, paragraph_width())) + "\n";
}

bool standard_output_has_colours() { return allows_colours(STDOUT_FILENO); }

Terminal standard_error() {
  return {.out = &raw_standard_error(),
          .interactive = is_for_people(STDERR_FILENO),
          .colour = allows_colours(STDERR_FILENO),
          .width = [] { return terminal_width(STDERR_FILENO); },
          .clock = seconds};
}

int display_width(std::string_view text) {
  const std::string valid = replace_invalid_utf8(text);
  int width = 0;
  for (std::size_t at = 0; at < valid.size();) width += columns_of(next_code_point(valid, at));
  return width;
}

std::string fit(std::string_view text, int columns) {
  std::string valid = visible_text(replace_invalid_utf8(text));
  int width = 0;
  for (std::size_t at = 0; at < valid.size();) {
    const std::size_t begin = at;
    width += columns_of(next_code_point(valid, at));
    if (width > columns) valid.resize(begin);
  }
  return valid;
}

std::vector<std::string> wrapped_lines(std::string_view text, int columns) {
  std::vector<std::string> lines(1);
  for (std::string word : split_words(std::string(text))) {
    const int used = display_width(lines.back());
    if (used > 0 && used + 1 + display_width(word) > columns) lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    while (lines.back().empty() && display_width(word) > columns) {
      // A character wider than the line is printed anyway.
      const std::string head = fit(word, std::max(columns, 2));
      lines.back() = head;
      lines.emplace_back();
      word.erase(0, head.size());
    }
    lines.back() += word;
  }
  if (lines.size() > 1 && lines.back().empty()) lines.pop_back();
  return lines;
}

std::string wrap(std::string_view text, int columns, int indent) {
  std::string wrapped;
  for (const std::string& line : wrapped_lines(text, columns - indent))
    wrapped += (wrapped.empty() ? "" : "\n" + std::string(static_cast<std::size_t>(indent), ' ')) + line;
  return wrapped;
}

}  // namespace zoo
