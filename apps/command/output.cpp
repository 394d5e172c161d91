#include "apps/command/output.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <numeric>

#include "apps/command/visible_text.h"
#include "data/base/lines.h"

namespace zoo {
namespace {

constexpr std::size_t kGap = 2;
constexpr int kNarrowestColumn = 20;  // of wrapped text

// Chooses the unit after rounding: 999,950 is "1.0 M", not "1000.0 k".
std::string scaled(std::int64_t value, const std::array<const char*, 5>& units) {
  auto number = static_cast<double>(value);
  std::size_t unit = 0;
  while (std::abs(number) >= (unit == 0 ? 1000.0 : 999.95) && unit + 1 < units.size()) {
    number /= 1000;
    ++unit;
  }
  const std::string suffix = units[unit];
  return format_text("%.*f", unit == 0 ? 0 : 1, number) + (suffix.empty() ? "" : " " + suffix);
}

int longest_word(const std::string& text) {
  int longest = 0;
  for (const std::string& word : split_words(text)) longest = std::max(longest, display_width(word));
  return longest;
}

// Width of a line with columns of these widths.
int sum(const std::vector<int>& widths) {
  return std::accumulate(widths.begin(), widths.end(),
                         widths.empty() ? 0 : static_cast<int>(kGap * (widths.size() - 1)));
}

}  // namespace

std::string format_text(const char* format, ...) {
  std::array<char, 256> text{};
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  return text.data();
}

std::string with_separators(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string human_count(std::int64_t value) { return scaled(value, {"", "k", "M", "B", "T"}); }

std::string human_bytes(std::int64_t bytes) { return scaled(bytes, {"B", "kB", "MB", "GB", "TB"}); }

std::string clock_time(std::int64_t seconds) {
  const auto hours = static_cast<long long>(seconds / 3600);
  const auto minutes = static_cast<int>(seconds / 60 % 60), rest = static_cast<int>(seconds % 60);
  return hours > 0 ? format_text("%lld:%02d:%02d", hours, minutes, rest)
                   : format_text("%d:%02d", minutes, rest);
}

Table::Column number(std::string heading) { return {std::move(heading), Table::Align::right}; }

void Table::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = visible_text(cell);
  rows_.push_back(std::move(cells));
}

// Widths of the columns, headings included. To fit into `width`, headings are narrowed first, down to their
// cells, then texts after the first column, the widest first.
std::vector<int> Table::widths(int width) const {
  std::vector<int> widths, cells;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    cells.push_back(0);
    for (const auto& row : rows_) cells[c] = std::max(cells[c], display_width(row[c]));
    widths.push_back(std::max(cells[c], display_width(columns_[c].heading)));
  }
  std::vector<int> least = widths;
  const auto narrow = [&] {
    for (int excess = sum(widths) - width; width > 0 && excess > 0; --excess) {
      int* widest = nullptr;
      for (std::size_t c = 0; c < widths.size(); ++c)
        if (widths[c] > least[c] && (widest == nullptr || widths[c] > *widest)) widest = &widths[c];
      if (widest == nullptr) break;
      --*widest;
    }
  };
  for (std::size_t c = 0; c < columns_.size(); ++c)
    least[c] = std::max(cells[c], longest_word(columns_[c].heading));
  narrow();
  for (std::size_t c = 1; c < columns_.size(); ++c)
    if (columns_[c].align == Align::left) least[c] = std::min(widths[c], kNarrowestColumn);
  narrow();
  return widths;
}

void Table::print(std::ostream& out, int width) const {
  const std::vector<int> widths = this->widths(width);
  if (width > 0 && sum(widths) > width) return print_paragraphs(out, width);
  std::vector<std::string> headings;
  for (const Column& column : columns_) headings.push_back(column.heading);
  if (std::ranges::count(headings, "") < std::ssize(headings))
    print_line(out, headings, widths, /*at_bottom=*/true);
  for (const auto& row : rows_) print_line(out, row, widths);
}

void Table::print_line(std::ostream& out, const std::vector<std::string>& cells,
                       const std::vector<int>& widths, bool at_bottom) const {
  std::vector<std::vector<std::string>> wrapped;
  std::size_t lines = 1;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const bool fits = display_width(cells[c]) <= widths[c];  // then its spaces are preserved
    wrapped.push_back(fits ? std::vector{cells[c]} : wrapped_lines(cells[c], widths[c]));
    lines = std::max(lines, wrapped[c].size());
  }
  if (at_bottom)
    for (auto& cell : wrapped) cell.insert(cell.begin(), lines - cell.size(), "");
  for (std::size_t line = 0; line < lines; ++line) {
    std::string text;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string cell = line < wrapped[c].size() ? wrapped[c][line] : "";
      const std::string blanks(static_cast<std::size_t>(widths[c] - display_width(cell)), ' ');
      text += (c == 0 ? "" : std::string(kGap, ' ')) +
              (columns_[c].align == Align::left ? cell + blanks : blanks + cell);
    }
    out << text.substr(0, text.find_last_not_of(' ') + 1) << "\n";
  }
}

void Table::print_paragraphs(std::ostream& out, int width) const {
  constexpr int kIndent = 4;
  for (const auto& row : rows_) {
    std::string text;
    for (std::size_t c = 1; c < row.size(); ++c) {
      if (row[c].empty()) continue;
      const std::string& name = columns_[c].heading;
      text += (text.empty() ? "" : ", ") + name + (name.empty() ? "" : ": ") + row[c];
    }
    const std::string& heading = columns_[0].heading;
    out << fit(heading + (heading.empty() ? "" : " ") + row[0], width) << "\n"
        << std::string(kIndent, ' ') << wrap(text, width, kIndent) << "\n";
  }
}

}  // namespace zoo
