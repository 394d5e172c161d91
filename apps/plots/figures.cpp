#include "apps/plots/figures.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/command/terminal.h"
#include "apps/plots/gnuplot.h"
#include "data/base/atomic_file.h"
#include "data/base/json.h"

namespace zoo {
namespace {

// Range of the values, with margins for the words at both ends.
template <class Get> Interval roomy_extent(const std::vector<WordPoint>& points, Get get) {
  const auto [low, high] = std::ranges::minmax_element(points, {}, get);
  const double room = std::max(0.12 * (get(*high) - get(*low)), 1e-3);
  return {get(*low) - room, get(*high) + room};
}

std::string masked_lines(const HeatMap& map) {
  std::string lines;
  for (std::size_t row = 0; row < map.masked.size(); ++row) {
    for (std::size_t column = 0; column < map.masked[row].size(); ++column)
      if (map.masked[row][column]) lines += std::to_string(column) + " " + std::to_string(row) + "\n";
  }
  return lines;
}

std::string cell_lines(const HeatMap& map, const Interval& extent) {
  std::string lines;
  for (std::size_t row = 0; row < map.cells.size(); ++row) {
    for (std::size_t column = 0; column < map.cells[row].size(); ++column) {
      const double value = map.cells[row][column];
      // White text on dark cells: both ends of a palette around 0 are dark.
      const double part = (value - extent.low) / (extent.high - extent.low);
      const bool dark = extent.low < 0 ? std::abs(part - 0.5) > 0.35 : part > 0.6;
      if (map.is_masked(row, column)) continue;
      lines += std::to_string(column) + " " + std::to_string(row) + " " + number_text(value) +
               (dark ? " 0xffffff" : " 0x202020") +
               (map.texts.empty() ? "" : " " + gnuplot_quote(map.texts[row][column])) + "\n";
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

// Positions of the words, in axis units: the nearest one around the point that hides no point and no earlier
// word, or else the first one that hides the fewest.
std::vector<Box> label_places(const std::vector<WordPoint>& points, const Interval& x, const Interval& y) {
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

// The losses of a metrics.jsonl as gnuplot's inline data: lines of "iteration loss".
struct Curves {
  std::string train, val;
};

Curves read_curves(const std::filesystem::path& metrics) {
  Curves curves;
  std::istringstream lines(read_file(metrics));
  for (std::string line; std::getline(lines, line);) {
    const auto object = parse_json(line);
    if (!object.is_object() || !object.contains("iter")) continue;
    for (const auto& [key, points] : {std::pair("train_loss", &curves.train), {"val_loss", &curves.val}})
      if (object.contains(key) && object[key].is_number())
        *points += object["iter"].dump() + " " + object[key].dump() + "\n";
  }
  return curves;
}

}  // namespace

Figure word_scatter(const Axes& axes, const std::vector<WordPoint>& points) {
  const Interval x = roomy_extent(points, [](const WordPoint& p) { return p.x; });
  const Interval y = roomy_extent(points, [](const WordPoint& p) { return p.y; });
  const std::vector<Box> places = label_places(points, x, y);
  std::string lines;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const WordPoint& point = points[i];
    lines += number_text(point.x) + " " + number_text(point.y) + " " + gnuplot_quote(point.word) + " 0x" +
             colour(static_cast<std::size_t>(point.group)).substr(1) + " " + number_text(places[i].x) + " " +
             number_text(places[i].y) + "\n";
  }
  std::string legend;
  for (std::size_t group = 0; group < axes.groups.size(); ++group) {
    if (axes.groups[group].empty()) continue;
    legend += ", NaN with points pt 7 ps 1.0 lc rgb '" + colour(group) + "' title " +
              gnuplot_quote(axes.groups[group]);
  }
  Axes spaced = axes;
  if (!legend.empty()) spaced.x += "\n ";  // an empty line separates the names from the axis label
  return {data_block("points", lines) + frame(spaced) + range("x", x.low, x.high) +
              range("y", y.low, y.high) + "set grid lc rgb '#e4e4e4'\n" +
              (axes.groups.empty() ? "set key off\n" : "set key below\n") +
              "plot $points using 1:2:4 with points pt 7 ps 1.0 lc rgb variable notitle, "
              "$points using 5:6:3:4 with labels font ',13' tc rgb variable notitle" +
              legend + "\n",
          [=](const TextStyle& style) { return text_word_scatter(axes, points, style); }};
}

void HeatMap::mask_causally() {
  masked.clear();
  for (std::size_t row = 0; row < cells.size(); ++row) {
    masked.emplace_back(cells[row].size(), true);
    std::fill_n(masked.back().begin(), std::min(row + 1, masked.back().size()), false);
  }
}

Interval extent_of(const HeatMap& map) {
  if (map.low != map.high) return {map.low, map.high};
  Interval extent{map.cells.front().front(), map.cells.front().front()};
  for (const auto& row : map.cells) {
    const auto [low, high] = std::minmax_element(row.begin(), row.end());
    extent = {std::min(extent.low, *low), std::max(extent.high, *high)};
  }
  if (extent.low == extent.high) extent.high += 1;
  return extent;
}

Figure heat_map(const HeatMap& map) {
  const Interval extent = extent_of(map);
  const auto rows = static_cast<double>(map.cells.size());
  const auto columns = static_cast<double>(map.cells.front().size());
  std::string script = data_block("cells", cell_lines(map, extent)) + frame(map.axes);
  script += "set border 0\nset tics scale 0\nset key off\n";
  script += tics("x", map.columns) + tics("y", map.rows);
  script += range("x", -0.5, columns - 0.5) + range("y", rows - 0.5, -0.5);
  script += "set cbrange [" + number_text(extent.low) + ":" + number_text(extent.high) + "]\n";
  script += extent.low < 0
                ? "set palette defined (0 '#2166ac', 0.5 '#f7f7f7', 1 '#b2182b')\n"
                : "set palette defined (0 '#ffffff', 0.25 '#c6dbef', 0.5 '#6baed6', 0.75 '#2171b5', "
                  "1 '#08306b')\n";
  const std::string hidden = masked_lines(map);
  if (!hidden.empty()) script += data_block("masked", hidden);
  const bool labelled = map.values || !map.texts.empty();
  // Of a single row or column gnuplot draws no image.
  const bool is_image = !labelled && hidden.empty() && rows > 1 && columns > 1;
  script += "plot $cells using ";
  script += is_image ? "1:2:3 with image" : "1:2:(0.5):(0.5):3 with boxxyerror fs solid noborder lc palette";
  const std::string label = map.texts.empty() ? "(sprintf('%.2f', abs($3) < 0.005 ? 0 : $3))" : "5";
  if (labelled) script += ", $cells using 1:2:" + label + ":4 with labels tc rgb variable";
  if (!hidden.empty())
    script += ", $masked using 1:2:(0.5):(0.5) with boxxyerror fs pattern 4 noborder lc rgb '#b8bec6'";
  script += "\n";
  return {script, [=](const TextStyle& style) { return text_heat_map(map, style); }};
}

Figure bar_chart(const BarChart& chart) {
  std::string lines;
  for (std::size_t i = 0; i < chart.values.size(); ++i)
    lines += std::to_string(i) + " " + number_text(chart.values[i]) + "\n";
  // Long labels are readable only with horizontal bars.
  const bool lie =
      std::ranges::any_of(chart.labels, [](const std::string& label) { return label.size() > 10; });
  // Space for the value at the end of the longest bar.
  const double longest = *std::max_element(chart.values.begin(), chart.values.end());
  const double top = std::max(chart.top, longest > 0 ? (lie ? 1.3 : 1.15) * longest : 1.0);
  const std::string values = lie ? "x" : "y";
  const std::string fill = " lc rgb '" + colour(static_cast<std::size_t>(chart.group)) + "'";
  const auto last = static_cast<double>(chart.values.size()) - 0.4;
  Axes axes = chart.axes;
  if (lie) std::swap(axes.x, axes.y);
  std::string script = data_block("bars", lines) + frame(axes) + tics(lie ? "y" : "x", chart.labels);
  script += lie ? range("y", last, -0.6) : range("x", -0.6, last);
  script += range(values, 0, top) + "set grid " + values + "tics lc rgb '#e4e4e4'\n";
  script += "set boxwidth 0.7\nset style fill solid 0.85\nset key off\n";
  const std::string label =
      "sprintf('%.2f', $2)" + (chart.unit.empty() ? "" : " . " + gnuplot_quote(chart.unit));
  if (lie) {
    script += "plot $bars using ($2/2):1:($2/2):(0.35) with boxxyerror" + fill + ", $bars using 2:1:(" +
              label + ") with labels left offset 0.7,0\n";
  } else {
    script += "plot $bars using 1:2 with boxes" + fill + ", $bars using 1:2:(" + label +
              ") with labels offset 0,0.7\n";
  }
  return {script, [=](const TextStyle& style) { return text_bar_chart(chart, style); }};
}

constexpr const char* kLegendBelow = "set key below samplen 4\n";

Figure grid(const std::string& title, const std::vector<Figure>& figures, int columns) {
  const int rows = (static_cast<int>(figures.size()) + columns - 1) / columns;
  std::multiset<std::string> legends;
  std::size_t last = 0;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (figures[i].legend.empty()) continue;
    legends.insert(figures[i].legend);
    last = i;
  }
  const bool shared = legends.size() > 1 && legends.count(*legends.begin()) == legends.size();
  const auto text = [=](const TextStyle& style) {
    std::string all = title + "\n";
    for (std::size_t i = 0; i < figures.size(); ++i) {
      std::string own = figures[i].text(style);
      // The last line names the curves.
      if (shared && i < last && !figures[i].legend.empty()) own.erase(own.rfind('\n', own.size() - 2) + 1);
      all += "\n" + own;
    }
    return all;
  };
  Figure all{"set multiplot layout " + std::to_string(rows) + "," + std::to_string(columns) + " title " +
                 gnuplot_quote(title) + " font ',15'\n",
             text, 560 * columns, 60 + 460 * rows};
  const int rows_below = rows - 1 - static_cast<int>(last) / columns;
  const std::string place = number_text((460.0 * rows_below + 8) / all.height);
  for (std::size_t i = 0; i < figures.size(); ++i) {
    all.script += "reset\n";
    if (!shared) all.script += kLegendBelow;
    else if (!figures[i].legend.empty())  // with room for the legend below each
      all.script += "set bmargin 6\n" +
                    (i < last ? "set key off\n"
                              : "set key at screen 0.5," + place + " center bottom horizontal samplen 4\n");
    all.script += figures[i].script;
  }
  all.script += "unset multiplot\n";
  return all;
}

void draw(const Figure& figure, const std::filesystem::path& path) {
  const std::string size = std::to_string(figure.width) + "," + std::to_string(figure.height);
  const bool svg = path.extension() == ".svg";
  gnuplot("set terminal " + std::string(svg ? "svg" : "pngcairo") + " noenhanced size " + size +
              (svg ? " dynamic" : "") + " font 'sans,12' background rgb 'white'\n" + "set output OUTPUT\n" +
              (figure.legend.empty() ? "" : kLegendBelow) + figure.script,
          path);
}

void add_format_flag(Flags& flags, std::string& format) {
  flags.choice("format", format, {"both", "png", "svg", "terminal"},
               "format of the picture files; terminal prints the pictures as text and needs no gnuplot");
}

void show_figure(const Figure& figure, const std::filesystem::path& stem, const std::string& format) {
  if (format == "terminal") {
    TextStyle style{.colour = standard_output_has_colours()};
    if (const int width = standard_output_width(); width > 0) style.width = width;
    std::cout << "\n" << figure.text(style);
    return;
  }
  std::cout.flush();
  make_directories(stem.parent_path());
  try {
    for (const std::string kind : {"png", "svg"}) {
      if (format != "both" && format != kind) continue;
      const std::filesystem::path path = stem.string() + "." + kind;
      draw(figure, path);
      std::cerr << "picture: " << path.string() << "\n";
    }
  } catch (const GnuplotMissing& missing) {
    std::cerr << "warning: " << missing.what() << "; --format terminal needs no gnuplot\n";
  }
}

void plot_loss(const std::filesystem::path& metrics, const std::filesystem::path& output) {
  const auto [train, val] = read_curves(metrics);
  if (train.empty()) throw Error("cannot draw ", output, ": ", metrics, " has no losses");
  const std::string script = data_block("train", train) + data_block("val", val) +
                             frame({.title = "", .x = "iteration", .y = "loss (nats per token)"}) + R"gp(
set terminal pngcairo size 1100,680 font "sans,13" background rgb "white"
set output OUTPUT
set autoscale xfix
set grid ytics lc rgb "#e4e4e4" lw 1
set key top right
set yrange [0:*]
)gp";
  std::string plot = R"(plot $train using 1:2 with lines lw 1.5 lc rgb "#9db8d9" title "training batch")";
  if (!val.empty())
    plot += R"(, $val using 1:2 with linespoints lw 2.5 pt 7 ps 1.1 lc rgb "#c0392b" title "validation")";
  gnuplot(script + plot + "\n", output);
}

}  // namespace zoo
