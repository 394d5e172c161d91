#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace zoo {

class Flags;

struct TextStyle {
  int width = 80;  // columns
  bool colour = false;
};

/// A figure as gnuplot commands, without terminal and output file, and as text; sizes in pixels.
struct Figure {
  std::string script;
  std::function<std::string(const TextStyle&)> text;
  int width = 900, height = 640;
  std::string legend = {};  // names and styles of its curves; empty: no legend below it
};

struct Axes {
  std::string title, x, y;
  bool log_x = false, log_y = false;
  std::optional<double> trained = std::nullopt;  // line chart: position on x at which training ended
  std::vector<std::string> groups = {};          // word scatter: names of the groups, for a legend
};

/// A word at a point; a group (0, 1, …) shares one colour.
struct WordPoint {
  double x = 0, y = 0;
  std::string word;
  int group = 0;
};
Figure word_scatter(const Axes& axes, const std::vector<WordPoint>& points);

/// Cells [rows][columns] as colours from `low` (pale) to `high` (dark); the first row is at the top. Axes
/// without labels show indices. Equal low and high: the range of the cells.
struct HeatMap {
  Axes axes;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> cells;
  std::vector<std::vector<std::string>> texts;  // printed in the cells, as text with the values; or empty
  std::vector<std::vector<bool>> masked;        // hatched, unlike a weight of 0; or empty
  bool values = true;                           // print them in the cells
  double low = 0, high = 0;

  /// Masks the columns after the diagonal: keys after their query.
  void mask_causally();
  bool is_masked(std::size_t row, std::size_t column) const { return !masked.empty() && masked[row][column]; }
};
Figure heat_map(const HeatMap& map);

struct Interval {
  double low = 0, high = 0;
};
/// Values of both ends of the colours: map.low and map.high, or the least and the largest of the cells.
Interval extent_of(const HeatMap& map);

/// A bar per label with its value at the end, vertical, or horizontal if a label is long; `group` selects the
/// colour, `top` the end of the axis (0: from the values).
struct BarChart {
  Axes axes;
  std::vector<std::string> labels;
  std::vector<double> values;
  int group = 0;
  double top = 0;
  std::string unit = {};  // printed after the values, such as "%"
};
Figure bar_chart(const BarChart& chart);

struct Curve {
  std::string title;
  std::vector<double> x, y;

  void add(auto at, double value) {
    x.push_back(static_cast<double>(at));
    y.push_back(value);
  }
};
Figure line_chart(const Axes& axes, const std::vector<Curve>& lines);

/// Figures in rows of `columns` under one title, and over one legend if all curves have the same.
Figure grid(const std::string& title, const std::vector<Figure>& figures, int columns);

// Figures as text of at most style.width columns, without gnuplot; shades represent values without colours.

/// With texts, each cell shows its text and value, in several blocks of columns if they are too wide for one.
/// Else shows values if they fit, else shades of two characters per cell, else the largest of the cells that
/// share a character. Columns have labels above them or, if these do not fit, numbers.
std::string text_heat_map(const HeatMap& map, const TextStyle& style);
std::string text_bar_chart(const BarChart& chart, const TextStyle& style);
/// One mark per line, with a legend below.
std::string text_line_chart(const Axes& axes, const std::vector<Curve>& lines, const TextStyle& style);
/// Words at their points; if words overlap, the first one is complete.
std::string text_word_scatter(const Axes& axes, const std::vector<WordPoint>& points, const TextStyle& style);

/// Writes a PNG or SVG, by the file extension. Throws GnuplotMissing, or Error naming the file.
void draw(const Figure& figure, const std::filesystem::path& path);

/// Adds --format both|png|svg|terminal.
void add_format_flag(Flags& flags, std::string& format);

/// Draws the figure as `stem`.png, `stem`.svg or both, and prints their names on standard error; "terminal"
/// prints text instead, coloured on a terminal. Flushes standard output first. Without gnuplot it prints a
/// note and draws nothing; throws Error if the folder cannot be written.
void show_figure(const Figure& figure, const std::filesystem::path& stem, const std::string& format);

/// Plots training and validation loss of a metrics.jsonl over iterations as a PNG. Throws Error if gnuplot is
/// not installed or there is nothing to plot.
void plot_loss(const std::filesystem::path& metrics, const std::filesystem::path& output);

}  // namespace zoo
