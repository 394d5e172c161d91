#include "apps/plots/figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "apps/command/display_width.h"
#include "apps/plots/gnuplot.h"
#include "apps/plots/text_plots.h"

namespace zoo {
namespace {

// Distinguishable by colour-blind people and on white.
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

// Replaces quotes, since inline data has no escapes.
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

// gnuplot reads a tic label as a number format.
std::string as_format(const std::string& label) {
  std::string format;
  for (const char letter : label) format += letter == '%' ? std::string("%%") : std::string(1, letter);
  return format;
}

// Sets tics such as: set xtics ("iron" 0, "man" 1)
std::string tics(const std::string& axis, const std::vector<std::string>& labels) {
  if (labels.empty()) return "";
  const auto longest = std::max_element(labels.begin(), labels.end(),
                                        [](const auto& a, const auto& b) { return a.size() < b.size(); });
  // Many long labels are vertical; a few are readable slanted.
  const bool upright = labels.size() > (longest->size() > 10 ? 5 : 12) && longest->size() > 3;
  const bool slanted = longest->size() > 10 && !upright;
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

// Range of the values, with margins for the words at both ends.
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
      // White text on dark cells: both ends of a palette around 0 are dark.
      const double part = (value - extent.low) / (extent.high - extent.low);
      const bool dark = extent.low < 0 ? std::abs(part - 0.5) > 0.35 : part > 0.6;
      lines += std::to_string(column) + " " + std::to_string(row) + " " + number_text(value) +
               (dark ? " 0xffffff" : " 0x202020") +
               (map.texts.empty() ? "" : " " + data_text(map.texts[row][column])) + "\n";
    }
    lines += "\n";
  }
  return lines;
}

struct Box {
  double x, y, width, height;  // centre and size

  bool meets(const Box& other) const {
    return std::abs(x - other.x) * 2 < width + other.width &&
           std::abs(y - other.y) * 2 < height + other.height;
  }
};

// Places the words, in axis units: the nearest place around the point that hides no point and no earlier
// word, or else the first one that hides the fewest.
std::vector<Box> label_places(const std::vector<WordPoint>& points, const Extent& x, const Extent& y) {
  // For the default figure size, within its margins.
  const double letter = (x.high - x.low) / 800 * 8.5, line = (y.high - y.low) / 540 * 17;
  std::vector<Box> taken;
  for (const WordPoint& point : points) taken.push_back({point.x, point.y, letter, line / 2});
  std::vector<Box> places;
  for (const WordPoint& point : points) {
    const double width = letter * display_width(point.word), beside = width / 2 + letter;
    Box best{};
    auto fewest = static_cast<std::ptrdiff_t>(taken.size()) + 1;
    for (const double up : {1.0, -1.0, 0.0, 2.0, -2.0, 3.0, -3.0}) {
      for (const double right : {0.0, beside, -beside}) {
        if (up == 0 && right == 0) continue;
        const Box tried{point.x + right, point.y + up * line, width, line};
        const auto hides = [&](const Box& other) { return tried.meets(other); };
        const auto hidden = std::count_if(taken.begin(), taken.end(), hides);
        if (hidden < fewest) best = tried, fewest = hidden;
      }
    }
    places.push_back(best);
    taken.push_back(best);
  }
  return places;
}

}  // namespace

Figure word_scatter(const Axes& axes, const std::vector<WordPoint>& points) {
  const Extent x = roomy_extent(points, [](const WordPoint& p) { return p.x; });
  const Extent y = roomy_extent(points, [](const WordPoint& p) { return p.y; });
  const std::vector<Box> places = label_places(points, x, y);
  std::string lines;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const WordPoint& point = points[i];
    lines += number_text(point.x) + " " + number_text(point.y) + " " + data_text(point.word) + " 0x" +
             colour(static_cast<std::size_t>(point.group)).substr(1) + " " + number_text(places[i].x) + " " +
             number_text(places[i].y) + "\n";
  }
  return {data_block("points", lines) + frame(axes) + range("x", x.low, x.high) + range("y", y.low, y.high) +
              "set grid lc rgb '#e4e4e4'\nset key off\n"
              "plot $points using 1:2:4 with points pt 7 ps 1.0 lc rgb variable, "
              "$points using 5:6:3:4 with labels font ',13' tc rgb variable\n",
          [=](const TextStyle& style) { return text_word_scatter(axes, points, style); }};
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
  if (map.values || !map.texts.empty()) {
    script +=
        "plot $cells using 1:2:(0.5):(0.5):3 with boxxyerror fs solid noborder lc palette, "
        "$cells using 1:2:" +
        std::string(map.texts.empty() ? "(sprintf('%.2f', $3))" : "5") + ":4 with labels tc rgb variable\n";
  } else {
    script += "plot $cells using 1:2:3 with image\n";
  }
  return {script, [=](const TextStyle& style) { return text_heat_map(map, style); }};
}

Figure bar_chart(const BarChart& chart) {
  std::string lines;
  for (std::size_t i = 0; i < chart.values.size(); ++i) {
    lines += std::to_string(i) + " " + number_text(chart.values[i]) + "\n";
  }
  // Long labels are readable beside horizontal bars.
  const bool lie =
      std::any_of(chart.labels.begin(), chart.labels.end(), [](const auto& l) { return l.size() > 10; });
  const std::string top = chart.top > 0 ? number_text(chart.top) : "*", values = lie ? "x" : "y";
  const std::string fill = " lc rgb '" + colour(static_cast<std::size_t>(chart.group)) + "'";
  const auto last = static_cast<double>(chart.values.size()) - 0.4;
  Axes axes = chart.axes;
  if (lie) std::swap(axes.x, axes.y);
  std::string script = data_block("bars", lines) + frame(axes) + tics(lie ? "y" : "x", chart.labels);
  script += lie ? range("y", last, -0.6) : range("x", -0.6, last);
  script += "set " + values + "range [0:" + top + "]\nset grid " + values + "tics lc rgb '#e4e4e4'\n";
  script += "set boxwidth 0.7\nset style fill solid 0.85\nset key off\n";
  if (lie) {
    script += "plot $bars using ($2/2):1:($2/2):(0.35) with boxxyerror" + fill +
              ", $bars using 2:1:(sprintf('%.2f', $2)) with labels left offset 0.7,0\n";
  } else {
    script += "plot $bars using 1:2 with boxes" + fill +
              ", $bars using 1:2:(sprintf('%.2f', $2)) with labels offset 0,0.7\n";
  }
  return {script, [=](const TextStyle& style) { return text_bar_chart(chart, style); }};
}

Figure line_chart(const Axes& axes, const std::vector<Curve>& lines) {
  // An empty line separates the names from the axis label.
  Axes spaced = axes;
  spaced.x += "\n ";
  std::string script = frame(lines.size() > 1 ? spaced : axes) + "set grid lc rgb '#e4e4e4'\n", plot;
  script += lines.size() > 1 ? "set key below samplen 2\n" : "set key off\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string name = "line" + std::to_string(i);
    std::string data;
    for (std::size_t point = 0; point < lines[i].x.size(); ++point) {
      data += number_text(lines[i].x[point]) + " " + number_text(lines[i].y[point]) + "\n";
    }
    script += data_block(name, data);
    // With few points, mark each.
    const std::string style = lines[i].x.size() <= 16 ? "linespoints pt 7 ps 0.8" : "lines";
    plot += (i > 0 ? ", $" : "plot $") + name + " using 1:2 with " + style + " lw 2 lc rgb '" + colour(i) +
            "' title " + gnuplot_quote(lines[i].title);
  }
  return {script + plot + "\n", [=](const TextStyle& style) { return text_line_chart(axes, lines, style); }};
}

Figure grid(const std::string& title, const std::vector<Figure>& figures, int columns) {
  const int rows = (static_cast<int>(figures.size()) + columns - 1) / columns;
  const auto text = [=](const TextStyle& style) {
    std::string all = title + "\n";
    for (const Figure& figure : figures) all += "\n" + figure.text(style);
    return all;
  };
  Figure all{"set multiplot layout " + std::to_string(rows) + "," + std::to_string(columns) + " title " +
                 gnuplot_quote(title) + " font ',15'\n",
             text, 560 * columns, 60 + 460 * rows};
  for (const Figure& figure : figures) all.script += "reset\n" + figure.script;
  all.script += "unset multiplot\n";
  return all;
}

void draw(const Figure& figure, const std::filesystem::path& path) {
  const std::string size = std::to_string(figure.width) + "," + std::to_string(figure.height);
  const bool svg = path.extension() == ".svg";
  gnuplot("set terminal " + std::string(svg ? "svg" : "pngcairo") + " noenhanced size " + size +
              (svg ? " dynamic" : "") + " font 'sans,12' background rgb 'white'\n" + "set output OUTPUT\n" +
              figure.script,
          path);
}

}  // namespace zoo
