#include "apps/command/output.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "apps/command/display_width.h"

namespace zoo {
namespace {

constexpr std::size_t kGap = 2;
constexpr int kNarrowestColumn = 8;

// Chooses the unit after rounding: 999,950 is "1.0 M", not "1000.0 k".
std::string scaled(std::int64_t value, const std::array<const char*, 5>& units) {
  auto number = static_cast<double>(value);
  std::size_t unit = 0;
  while (std::abs(number) >= (unit == 0 ? 1000.0 : 999.95) && unit + 1 < units.size()) {
    number /= 1000;
    ++unit;
  }
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f" : "%.1f", number);
  const std::string suffix = units[unit];
  return text.data() + (suffix.empty() ? "" : " " + suffix);
}

std::string shortened(const std::string& cell, int width) {
  if (display_width(cell) <= width) return cell;
  return fit(cell, width - 1) + "…";
}

}  // namespace

std::string with_separators(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string human_count(std::int64_t value) {
  return scaled(value, {"", "k", "M", "B", "T"});
}

std::string human_bytes(std::int64_t bytes) {
  return scaled(bytes, {"B", "kB", "MB", "GB", "TB"});
}

Table::Column number(std::string heading) {
  return {std::move(heading), Table::Align::right};
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void Table::print(std::ostream& out, int width) const {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> headings;
  for (const Column& column : columns_) headings.push_back(column.heading);
  const bool has_headings =
      std::any_of(headings.begin(), headings.end(), [](const auto& text) { return !text.empty(); });
  if (has_headings) lines.push_back(headings);
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<int> widths(columns_.size(), 0);
  int total = columns_.empty() ? 0 : static_cast<int>(kGap * (columns_.size() - 1));
  int widest = -1;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    for (const auto& line : lines) widths[c] = std::max(widths[c], display_width(line[c]));
    total += widths[c];
    const bool wider = widest < 0 || widths[c] > widths[static_cast<std::size_t>(widest)];
    if (columns_[c].align == Align::left && wider) widest = static_cast<int>(c);
  }
  if (width > 0 && total > width && widest >= 0) {
    int& shrunk = widths[static_cast<std::size_t>(widest)];
    shrunk = std::max(std::min(shrunk, kNarrowestColumn), shrunk - (total - width));
  }

  for (const auto& line : lines) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string cell = shortened(line[c], widths[c]);
      const std::string blanks(static_cast<std::size_t>(widths[c] - display_width(cell)), ' ');
      text += (c == 0 ? "" : std::string(kGap, ' ')) +
              (columns_[c].align == Align::left ? cell + blanks : blanks + cell);
    }
    out << text.substr(0, text.find_last_not_of(' ') + 1) << "\n";
  }
}

}  // namespace zoo
