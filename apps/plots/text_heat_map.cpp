#include <algorithm>
#include <array>
#include <cmath>

#include "apps/command/output.h"
#include "apps/plots/figures.h"

namespace zoo {
namespace {

constexpr std::array<const char*, 5> kShades{" ", "░", "▒", "▓", "█"};
// Numbers of a terminal's 256 colours: pale to dark blue, and blue over white to red for values around 0.
constexpr std::array kOneSided{231, 195, 153, 117, 75, 39, 32, 25, 18, 17};
constexpr std::array kTwoSided{25, 67, 110, 153, 255, 224, 217, 209, 160, 124};
constexpr int kValueWidth = 6, kMostLabel = 14, kMostCellText = 10;
constexpr std::size_t kMostRows = 48;

struct ColourScale : Interval {
  explicit ColourScale(const HeatMap& map) : Interval(extent_of(map)) {}

  // Colour index from 0 to count - 1.
  std::size_t step(double value, std::size_t count) const {
    if (!std::isfinite(value)) return 0;
    const double part = std::clamp((value - low) / (high - low), 0.0, 1.0);
    return std::min(count - 1, static_cast<std::size_t>(part * static_cast<double>(count)));
  }

  std::string coloured(double value, const std::string& text) const {
    const std::size_t at = step(value, kOneSided.size());
    const bool dark = low < 0 ? at < 2 || at > 7 : at > 4;
    return "\x1b[48;5;" + std::to_string(low < 0 ? kTwoSided[at] : kOneSided[at]) + ";38;5;" +
           (dark ? "231" : "16") + "m" + text + "\x1b[0m";
  }
};

std::string padded(const std::string& text, int columns, bool right) {
  const std::string fitting = fit(text, columns);
  const std::string space(static_cast<std::size_t>(columns - display_width(fitting)), ' ');
  return right ? space + fitting : fitting + space;
}

// The value furthest from 0 among the cells that one character represents.
double largest(const HeatMap& map, std::size_t row_begin, std::size_t row_end, std::size_t begin,
               std::size_t end) {
  double found = map.cells[row_begin][begin];
  for (std::size_t row = row_begin; row < row_end; ++row) {
    for (std::size_t column = begin; column < end; ++column) {
      const double value = map.cells[row][column];
      if (!std::isfinite(found) || std::abs(value) > std::abs(found)) found = value;
    }
  }
  return found;
}

std::string label(const std::vector<std::string>& labels, std::size_t at) {
  return at < labels.size() ? labels[at] : std::to_string(at);
}

int label_width(const HeatMap& map) {
  int widest = 0;
  for (std::size_t row = 0; row < map.cells.size(); ++row)
    widest = std::max(widest, display_width(label(map.rows, row)));
  return std::min(widest, kMostLabel);
}

// A value with two digits; a rounded zero has no sign.
std::string value_text(double value) {
  return format_text("%*.2f", kValueWidth, std::abs(value) < 0.005 ? 0.0 : value);
}

std::string with_values(const HeatMap& map, const TextStyle& style, int left) {
  const ColourScale scale(map);
  std::string text(static_cast<std::size_t>(left), ' ');
  for (std::size_t column = 0; column < map.cells.front().size(); ++column)
    text += padded(label(map.columns, column), kValueWidth, /*right=*/true);
  text += "\n";
  for (std::size_t row = 0; row < map.cells.size(); ++row) {
    text += padded(label(map.rows, row), left, /*right=*/true);
    for (std::size_t column = 0; column < map.cells[row].size(); ++column) {
      const double value = map.cells[row][column];
      if (map.is_masked(row, column)) text += padded("·", kValueWidth, /*right=*/true);
      else text += style.colour ? scale.coloured(value, value_text(value)) : value_text(value);
    }
    text += "\n";
  }
  return text;
}

// Columns of the longest text of the cells or label of the columns, within bounds.
int text_width(const HeatMap& map) {
  int widest = 1;
  for (std::size_t column = 0; column < map.cells.front().size(); ++column) {
    for (const auto& row : map.texts) widest = std::max(widest, display_width(row[column]));
    widest = std::max(widest, display_width(label(map.columns, column)) - kValueWidth);
  }
  return std::min(widest, kMostCellText);
}

std::string with_texts(const HeatMap& map, const TextStyle& style, int left) {
  const ColourScale scale(map);
  const int width = text_width(map), cell = width + kValueWidth;
  const std::size_t columns = map.cells.front().size();
  // A space separates a cell from the previous one.
  const auto room = static_cast<std::size_t>(std::max(1, (style.width - left) / (cell + 1)));
  std::string text;
  for (std::size_t begin = 0; begin < columns; begin += room) {
    const std::size_t end = std::min(columns, begin + room);
    text += std::string(begin > 0 ? "\n" : "") + std::string(static_cast<std::size_t>(left), ' ');
    for (std::size_t column = begin; column < end; ++column)
      text += " " + padded(label(map.columns, column), cell, /*right=*/false);
    while (text.back() == ' ') text.pop_back();
    text += "\n";
    for (std::size_t row = 0; row < map.cells.size(); ++row) {
      text += padded(label(map.rows, row), left, /*right=*/true);
      for (std::size_t column = begin; column < end; ++column) {
        const double value = map.cells[row][column];
        const std::string shown = padded(map.texts[row][column], width, /*right=*/false) + value_text(value);
        text += " " + (style.colour ? scale.coloured(value, shown) : shown);
      }
      text += "\n";
    }
  }
  return text;
}

std::string with_shades(const HeatMap& map, const TextStyle& style, int left) {
  const ColourScale scale(map);
  const std::size_t rows = map.cells.size(), columns = map.cells.front().size();
  const auto room = static_cast<std::size_t>(std::max(8, style.width - left - 1));
  const std::size_t wide = 2 * columns <= room ? 2 : 1, shown = std::min(columns, room / wide);
  const std::size_t lines = std::min(rows, kMostRows);
  std::string text;
  if (wide == 2) {
    text = std::string(static_cast<std::size_t>(left) + 1, ' ');
    for (std::size_t column = 0; column < shown; ++column)
      text += padded(std::to_string(column % 100), 2, /*right=*/true);
    text += "\n";
  }
  for (std::size_t line = 0; line < lines; ++line) {
    const std::size_t row = line * rows / lines;
    text += padded(label(map.rows, row), left, /*right=*/true) + " ";
    for (std::size_t column = 0; column < shown; ++column) {
      const double value = largest(map, row, std::max(row + 1, (line + 1) * rows / lines),
                                   column * columns / shown, (column + 1) * columns / shown);
      const std::string shade = kShades[scale.step(value, kShades.size())];
      std::string cell;
      for (std::size_t i = 0; i < wide; ++i) cell += style.colour ? std::string(" ") : shade;
      text += style.colour ? scale.coloured(value, cell) : cell;
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string text_heat_map(const HeatMap& map, const TextStyle& style) {
  const int left = label_width(map);
  const auto columns = static_cast<int>(map.cells.front().size());
  const bool values = map.values && left + kValueWidth * columns <= style.width;
  const std::string cells = !map.texts.empty() ? with_texts(map, style, left)
                            : values           ? with_values(map, style, left)
                                               : with_shades(map, style, left);
  std::string ends;
  if (map.texts.empty() && !values) {
    const ColourScale scale(map);
    const char* low = !style.colour ? "blank" : scale.low < 0 ? "blue" : "pale";
    const char* high = !style.colour ? "█" : scale.low < 0 ? "red" : "dark";
    ends = format_text("; %.3g ", scale.low) + low + format_text(", %.3g ", scale.high) + high;
  }
  return map.axes.title + "\n" + cells + "rows: " + map.axes.y + ", columns: " + map.axes.x + ends + "\n";
}

}  // namespace zoo
