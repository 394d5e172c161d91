#include "apps/plots/figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "apps/plots/gnuplot.h"

namespace zoo {
namespace {

// Distinguishable without colour vision, and on white.
constexpr std::array<std::string_view, 8> kColours{"#1f5fa8", "#c0392b", "#2e8b57", "#d98200",
                                                   "#7d4ba0", "#00838f", "#8d5524", "#555555"};

std::string colour(std::size_t group) {
  return std::string(kColours[group % kColours.size()]);
}

std::string number_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return std::isfinite(value) ? text.data() : "NaN";
}

// A string in inline data, which has no escapes.
std::string data_text(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  return "\"" + text + "\"";
}

std::string data_block(const std::string& name, const std::string& lines) {
  return "$" + name + " << END_OF_DATA\n" + lines + "END_OF_DATA\n";
}

std::string frame(const Axes& axes) {
  std::string script = "set border 3 lc rgb '#808080'\nset tics nomirror textcolor rgb '#303030'\n";
  script += "set title " + gnuplot_quote(axes.title) + "\n";
  if (!axes.x.empty()) script += "set xlabel " + gnuplot_quote(axes.x) + "\n";
  if (!axes.y.empty()) script += "set ylabel " + gnuplot_quote(axes.y) + "\n";
  if (axes.log_x) script += "set logscale x\n";
  if (axes.log_y) script += "set logscale y\nset format y '1e%T'\n";
  return script;
}

// gnuplot takes a tic's label for a format of the number there.
std::string as_format(const std::string& label) {
  std::string format;
  for (const char letter : label) format += letter == '%' ? std::string("%%") : std::string(1, letter);
  return format;
}

// set xtics ("iron" 0, "man" 1)
std::string tics(const std::string& axis, const std::vector<std::string>& labels) {
  if (labels.empty()) return "";
  const auto longest = std::max_element(labels.begin(), labels.end(),
                                        [](const auto& a, const auto& b) { return a.size() < b.size(); });
  const bool slanted = axis == "x" && longest->size() > 10,
             upright = labels.size() > 12 && longest->size() > 3;
  std::string script = "set " + axis + "tics ";
  if (axis == "x" && (slanted || upright)) script += upright ? "rotate by 90 right " : "rotate by -25 ";
  for (std::size_t i = 0; i < labels.size(); ++i) {
    script += (i > 0 ? ", " : "(") + gnuplot_quote(as_format(labels[i])) + " " + std::to_string(i);
  }
  return script + ")\n";
}

std::string range(const std::string& axis, double low, double high) {
  return "set " + axis + "range [" + number_text(low) + ":" + number_text(high) + "]\n";
}

struct Extent {
  double low = 0, high = 0;
};

// The values' range, with room at both ends for the words that stand there.
template <class Get>
Extent roomy_extent(const std::vector<WordPoint>& points, Get get) {
  const auto [low, high] = std::minmax_element(points.begin(), points.end(),
                                               [&](const auto& a, const auto& b) { return get(a) < get(b); });
  const double room = std::max(0.12 * (get(*high) - get(*low)), 1e-3);
  return {get(*low) - room, get(*high) + room};
}

Extent extent_of(const HeatMap& map) {
  if (map.low != map.high) return {map.low, map.high};
  Extent extent{map.cells.front().front(), map.cells.front().front()};
  for (const auto& row : map.cells) {
    const auto [low, high] = std::minmax_element(row.begin(), row.end());
    extent = {std::min(extent.low, *low), std::max(extent.high, *high)};
  }
  if (extent.low == extent.high) extent.high += 1;
  return extent;
}

std::string cell_lines(const HeatMap& map, const Extent& extent) {
  std::string lines;
  for (std::size_t row = 0; row < map.cells.size(); ++row) {
    for (std::size_t column = 0; column < map.cells[row].size(); ++column) {
      const double value = map.cells[row][column];
      // Light letters where the cell is dark.
      const bool dark = (value - extent.low) / (extent.high - extent.low) > 0.6;
      lines += std::to_string(column) + " " + std::to_string(row) + " " + number_text(value) +
               (dark ? " 0xffffff\n" : " 0x202020\n");
    }
    lines += "\n";
  }
  return lines;
}

}  // namespace

Figure word_scatter(const Axes& axes, const std::vector<WordPoint>& points) {
  std::string lines;
  for (const WordPoint& point : points) {
    const std::string rgb = "0x" + colour(static_cast<std::size_t>(point.group)).substr(1);
    lines +=
        number_text(point.x) + " " + number_text(point.y) + " " + data_text(point.word) + " " + rgb + "\n";
  }
  const Extent x = roomy_extent(points, [](const WordPoint& p) { return p.x; });
  const Extent y = roomy_extent(points, [](const WordPoint& p) { return p.y; });
  return {data_block("points", lines) + frame(axes) + range("x", x.low, x.high) + range("y", y.low, y.high) +
          "set grid lc rgb '#e4e4e4'\nset key off\n"
          "plot $points using 1:2:4 with points pt 7 ps 1.2 lc rgb variable, "
          "$points using 1:2:3:4 with labels offset 0,0.9 font ',13' tc rgb variable\n"};
}

Figure heat_map(const HeatMap& map) {
  const Extent extent = extent_of(map);
  const auto rows = static_cast<double>(map.cells.size());
  const auto columns = static_cast<double>(map.cells.front().size());
  std::string script = data_block("cells", cell_lines(map, extent)) + frame(map.axes);
  script += "set border 0\nset tics scale 0\nset key off\n";
  script += tics("x", map.columns) + tics("y", map.rows);
  script += range("x", -0.5, columns - 0.5) + range("y", rows - 0.5, -0.5);
  script += "set cbrange [" + number_text(extent.low) + ":" + number_text(extent.high) + "]\n";
  script += extent.low < 0 ? "set palette defined (0 '#2166ac', 0.5 '#f7f7f7', 1 '#b2182b')\n"
                           : "set palette defined (0 '#fff5f0', 0.5 '#fb6a4a', 1 '#67000d')\n";
  if (map.values) {
    script +=
        "plot $cells using 1:2:(0.5):(0.5):3 with boxxyerror fs solid noborder lc palette, "
        "$cells using 1:2:(sprintf('%.2f', $3)):4 with labels tc rgb variable\n";
  } else {
    script += "plot $cells using 1:2:3 with image\n";
  }
  return {script};
}

Figure bar_chart(const BarChart& chart) {
  std::string lines;
  for (std::size_t i = 0; i < chart.values.size(); ++i) {
    lines += std::to_string(i) + " " + number_text(chart.values[i]) + "\n";
  }
  const std::string top = chart.top > 0 ? number_text(chart.top) : "*";
  std::string script = data_block("bars", lines) + frame(chart.axes) + tics("x", chart.labels);
  script += range("x", -0.6, static_cast<double>(chart.values.size()) - 0.4) + "set yrange [0:" + top + "]\n";
  script += "set boxwidth 0.7\nset style fill solid 0.85\nset grid ytics lc rgb '#e4e4e4'\nset key off\n";
  script += "plot $bars using 1:2 with boxes lc rgb '" + colour(static_cast<std::size_t>(chart.group)) +
            "', " + "$bars using 1:2:(sprintf('%.2f', $2)) with labels offset 0,0.7\n";
  return {script};
}

Figure line_chart(const Axes& axes, const std::vector<Line>& lines) {
  std::string script = frame(axes) + "set grid lc rgb '#e4e4e4'\nset key below\n", plot;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string name = "line" + std::to_string(i);
    std::string data;
    for (std::size_t point = 0; point < lines[i].x.size(); ++point) {
      data += number_text(lines[i].x[point]) + " " + number_text(lines[i].y[point]) + "\n";
    }
    script += data_block(name, data);
    // Few points are worth showing each.
    const std::string style = lines[i].x.size() <= 16 ? "linespoints pt 7 ps 0.8" : "lines";
    plot += (i > 0 ? ", $" : "plot $") + name + " using 1:2 with " + style + " lw 2 lc rgb '" + colour(i) +
            "' title " + gnuplot_quote(lines[i].title);
  }
  return {script + plot + "\n"};
}

Figure grid(const std::string& title, const std::vector<Figure>& figures, int columns) {
  const int rows = (static_cast<int>(figures.size()) + columns - 1) / columns;
  Figure all{"set multiplot layout " + std::to_string(rows) + "," + std::to_string(columns) + " title " +
                 gnuplot_quote(title) + " font ',15'\n",
             560 * columns, 60 + 460 * rows};
  for (const Figure& figure : figures) all.script += "reset\n" + figure.script;
  all.script += "unset multiplot\n";
  return all;
}

std::vector<std::filesystem::path> draw(const Figure& figure, const std::filesystem::path& stem) {
  const std::string size = std::to_string(figure.width) + "," + std::to_string(figure.height);
  std::vector<std::filesystem::path> written;
  for (const std::string& kind : {std::string("png"), std::string("svg")}) {
    const std::filesystem::path path = stem.string() + "." + kind;
    gnuplot("set terminal " + (kind == "png" ? "pngcairo" : kind) + " noenhanced size " + size +
                (kind == "svg" ? " dynamic" : "") + " font 'sans,12' background rgb 'white'\n" +
                "set output OUTPUT\n" + figure.script,
            path);
    written.push_back(path);
  }
  return written;
}

}  // namespace zoo
