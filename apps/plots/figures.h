#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace zoo {

/// A picture as gnuplot's commands, without terminal and output file; sizes in pixels.
struct Figure {
  std::string script;
  int width = 900, height = 640;
};

struct Axes {
  std::string title, x, y;
  bool log_x = false, log_y = false;
};

/// A word at a place; points of a group (0, 1, …) share a colour.
struct WordPoint {
  double x = 0, y = 0;
  std::string word;
  int group = 0;
};
Figure word_scatter(const Axes& axes, const std::vector<WordPoint>& points);

/// Cells [rows][columns] as colours, from `low` (pale) to `high` (dark); rows run from the top down.
/// Without labels the axes count. Equal low and high: the range of the cells.
struct HeatMap {
  Axes axes;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> cells;
  bool values = true;  // written into the cells
  double low = 0, high = 0;
};
Figure heat_map(const HeatMap& map);

/// A bar for each label, its value above it; `group` chooses the colour, `top` the end of the axis (0: by the
/// values).
struct BarChart {
  Axes axes;
  std::vector<std::string> labels;
  std::vector<double> values;
  int group = 0;
  double top = 0;
};
Figure bar_chart(const BarChart& chart);

struct Line {
  std::string title;
  std::vector<double> x, y;
};
Figure line_chart(const Axes& axes, const std::vector<Line>& lines);

/// Figures side by side in rows of `columns`, under one title.
Figure grid(const std::string& title, const std::vector<Figure>& figures, int columns);

/// Writes `stem`.png and `stem`.svg and returns their paths. Throws GnuplotMissing, or Error naming the file.
std::vector<std::filesystem::path> draw(const Figure& figure, const std::filesystem::path& stem);

}  // namespace zoo
