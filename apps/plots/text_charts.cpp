#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "apps/command/output.h"
#include "apps/plots/figures.h"

namespace zoo {
namespace {

constexpr std::array<const char*, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
constexpr std::array<const char*, 8> kMarks{"*", "o", "+", "x", "#", "@", "%", "&"};
constexpr std::array kTerminalColours{26, 160, 29, 172, 97, 30, 94, 241};
constexpr int kRows = 18, kAxis = 10;

std::string short_number(double value) { return format_text("%.4g", value); }

std::string spaces(int count) { return std::string(static_cast<std::size_t>(std::max(0, count)), ' '); }

std::string tinted(const TextStyle& style, std::size_t group, const std::string& text) {
  if (!style.colour || text == " ") return text;
  return "\x1b[38;5;" + std::to_string(kTerminalColours[group % kTerminalColours.size()]) + "m" + text +
         "\x1b[0m";
}

// Maps a number to a cell of an axis from the smallest to the largest included number.
class Scale {
 public:
  explicit Scale(bool logarithmic) : logarithmic_(logarithmic) {}

  void include(double value) {
    if (!fits(value)) return;
    low_ = std::min(low_, at(value));
    high_ = std::max(high_, at(value));
  }
  bool fits(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }
  int place(double value, int cells) const {
    if (high_ <= low_) return 0;
    return static_cast<int>(std::lround((at(value) - low_) / (high_ - low_) * (cells - 1)));
  }
  double end(bool high) const {
    const double value = high ? high_ : low_;
    return !std::isfinite(value) ? 0 : logarithmic_ ? std::pow(10.0, value) : value;
  }

 private:
  double at(double value) const { return logarithmic_ ? std::log10(value) : value; }

  bool logarithmic_;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -low_;
};

// A grid of characters; row 0 is the top.
class Canvas {
 public:
  Canvas(int rows, int columns)
      : cells_(static_cast<std::size_t>(rows),
               std::vector<std::string>(static_cast<std::size_t>(columns), " ")) {}

  void put(int row, int column, const std::string& cell) {
    if (row >= 0 && row < rows() && column >= 0 && column < columns())
      cells_[index(row)][index(column)] = cell;
  }
  bool is_free(int row, int column, int width) const {
    for (int i = column; i < column + width; ++i)
      if (i < 0 || i >= columns() || cells_[index(row)][index(i)] != " ") return false;
    return true;
  }
  std::string line(int row) const {
    std::string text;
    for (const std::string& cell : cells_[index(row)]) text += cell;
    return text;
  }
  int rows() const { return static_cast<int>(cells_.size()); }
  int columns() const { return static_cast<int>(cells_.front().size()); }

 private:
  static std::size_t index(int at) { return static_cast<std::size_t>(at); }

  std::vector<std::vector<std::string>> cells_;
};

// Adds axes and their end values around the canvas.
std::string framed(const Axes& axes, const Canvas& canvas, const Scale& x, const Scale& y) {
  std::string text = axes.title + "\n";
  for (int row = 0; row < canvas.rows(); ++row) {
    std::string name;
    if (row == 0) name = short_number(y.end(true));
    if (row + 1 == canvas.rows()) name = short_number(y.end(false));
    text += spaces(kAxis - 1 - display_width(name)) + name + " │" + canvas.line(row) + "\n";
  }
  const std::string low = short_number(x.end(false)), high = short_number(x.end(true));
  std::string rule;
  for (int i = 0; i < canvas.columns(); ++i) rule += "─";
  text += spaces(kAxis) + "└" + rule + "\n" + spaces(kAxis + 1) + low +
          spaces(canvas.columns() - display_width(low) - display_width(high)) + high + "\n";
  if (axes.trained) text += "trained to " + short_number(*axes.trained) + "; ";
  return text + "across: " + axes.x + (axes.log_x ? " (logarithmic)" : "") + ", up: " + axes.y +
         (axes.log_y ? " (logarithmic)" : "") + "\n";
}

int canvas_width(const TextStyle& style) { return std::clamp(style.width - kAxis - 2, 20, 100); }

// Draws the points of the line and enough points between them to connect them.
void put_line(const Curve& line, const Scale& x, const Scale& y, Canvas& canvas, const std::string& mark) {
  int last_column = -1, last_row = 0;
  for (std::size_t i = 0; i < line.x.size(); ++i) {
    if (!x.fits(line.x[i]) || !y.fits(line.y[i])) continue;
    const int column = x.place(line.x[i], canvas.columns());
    const int row = canvas.rows() - 1 - y.place(line.y[i], canvas.rows());
    for (int between = last_column + 1; last_column >= 0 && between < column; ++between) {
      const double part = static_cast<double>(between - last_column) / (column - last_column);
      canvas.put(static_cast<int>(std::lround(last_row + part * (row - last_row))), between, mark);
    }
    canvas.put(row, column, mark);
    last_column = column;
    last_row = row;
  }
}

}  // namespace

std::string text_bar_chart(const BarChart& chart, const TextStyle& style) {
  int widest = 0;
  double top = chart.top;
  for (const std::string& name : chart.labels) widest = std::max(widest, display_width(name));
  for (const double value : chart.values) top = std::max(top, chart.top > 0 ? chart.top : value);
  const int room = std::max(8, style.width - widest - 10);
  std::string text = chart.axes.title + "\n";
  for (std::size_t i = 0; i < chart.labels.size(); ++i) {
    const double part = top > 0 && chart.values[i] > 0 ? std::min(1.0, chart.values[i] / top) : 0.0;
    const auto eighths = static_cast<std::size_t>(std::lround(part * 8 * room));
    std::string bar;
    for (std::size_t full = 0; full < eighths / 8; ++full) bar += "█";
    bar += kEighths[eighths % 8];
    text += chart.labels[i] + spaces(widest - display_width(chart.labels[i])) + " " +
            tinted(style, static_cast<std::size_t>(chart.group), bar) + " " + short_number(chart.values[i]) +
            "\n";
  }
  return text + "bars: " + chart.axes.y + ", each a " + chart.axes.x + "\n";
}

std::string text_line_chart(const Axes& axes, const std::vector<Curve>& lines, const TextStyle& style) {
  Scale x(axes.log_x), y(axes.log_y);
  for (const Curve& line : lines) {
    for (const double value : line.x) x.include(value);
    for (const double value : line.y) y.include(value);
  }
  Canvas canvas(kRows, canvas_width(style));
  std::string names;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string mark = tinted(style, i, kMarks[i % kMarks.size()]);
    put_line(lines[i], x, y, canvas, mark);
    names += (i > 0 ? "   " : "") + mark + " " + lines[i].title;
  }
  return framed(axes, canvas, x, y) + (lines.size() > 1 ? names + "\n" : "");
}

std::string text_word_scatter(const Axes& axes, const std::vector<WordPoint>& points,
                              const TextStyle& style) {
  Scale x(false), y(false);
  int widest = 0;
  for (const WordPoint& point : points) {
    x.include(point.x);
    y.include(point.y);
    widest = std::max(widest, display_width(point.word));
  }
  Canvas canvas(kRows, canvas_width(style));
  const int room = std::max(1, canvas.columns() - widest - 2);  // for the word to the right of the last point
  for (const WordPoint& point : points) {
    const int row = canvas.rows() - 1 - y.place(point.y, canvas.rows()), column = x.place(point.x, room);
    const auto group = static_cast<std::size_t>(point.group);
    canvas.put(row, column, tinted(style, group, kMarks[group % kMarks.size()]));
    const int width = display_width(point.word);
    if (!canvas.is_free(row, column + 1, width)) continue;
    // The first cell holds the complete word; the other cells that it covers become empty.
    canvas.put(row, column + 1, tinted(style, group, point.word));
    for (int i = 1; i < width; ++i) canvas.put(row, column + 1 + i, "");
  }
  std::string names;
  for (std::size_t group = 0; group < axes.groups.size(); ++group) {
    if (axes.groups[group].empty()) continue;
    names += (names.empty() ? "" : "   ") + tinted(style, group, kMarks[group % kMarks.size()]) + " " +
             axes.groups[group];
  }
  return framed(axes, canvas, x, y) + (names.empty() ? "" : names + "\n");
}

}  // namespace zoo
