#include <algorithm>
#include <cmath>
#include <set>

#include "apps/plots/gnuplot.h"

namespace zoo {
namespace {

using Numbers = std::vector<double> Curve::*;

constexpr std::size_t kFewPoints = 16;  // up to this many points have marks
constexpr std::size_t kFewPlaces = 10;  // up to this many positions of a logarithmic axis have labels

// Range of the curves' numbers; a logarithmic axis has positive ones only.
Interval extent_of(const std::vector<Curve>& lines, Numbers numbers, bool log) {
  Interval found{INFINITY, -INFINITY};
  for (const Curve& line : lines) {
    for (const double value : line.*numbers) {
      if (!std::isfinite(value) || (log && value <= 0)) continue;
      found = {std::min(found.low, value), std::max(found.high, value)};
    }
  }
  return found.low <= found.high ? found : Interval{1, 2};
}

// Adds space around the curves. An axis of non-negative numbers begins at 0 unless all are far from it.
Interval roomy(Interval extent, bool log, double room) {
  if (log) {
    const double factor = extent.low == extent.high ? 2 : std::pow(extent.high / extent.low, room);
    return {extent.low / factor, extent.high * factor};
  }
  const double beside = extent.low == extent.high ? 0.5 : room * (extent.high - extent.low);
  return {extent.low - beside, extent.high + beside};
}

Interval height_of(const std::vector<Curve>& lines, bool log) {
  constexpr double kRoom = 0.05;
  const Interval values = extent_of(lines, &Curve::y, log);
  Interval height = roomy(values, log, kRoom);
  if (!log && values.low >= 0 && values.low <= 0.5 * values.high) height.low = 0;
  return height;
}

// 1, 2 and 5 of each decade, or only 1 if there are many.
std::vector<double> decades(const Interval& extent) {
  const bool many = std::log10(extent.high / extent.low) > 2.5;
  std::vector<double> found;
  for (int decade = static_cast<int>(std::floor(std::log10(extent.low))); decade <= 300; ++decade) {
    for (const double step : {1.0, 2.0, 5.0}) {
      const double value = step * std::pow(10.0, decade);
      if (value > extent.high) return found;
      if (value >= extent.low && (step == 1.0 || !many)) found.push_back(value);
    }
  }
  return found;
}

std::string tics_of_x(const std::vector<Curve>& lines, const Interval& width) {
  std::set<double> places;
  for (const Curve& line : lines) places.insert(line.x.begin(), line.x.end());
  if (places.size() > kFewPlaces) return number_tics("x", decades(width));
  return number_tics("x", {places.begin(), places.end()});
}

std::string axes_of(const Axes& axes, const std::vector<Curve>& lines, bool marked) {
  const Interval width = roomy(extent_of(lines, &Curve::x, axes.log_x), axes.log_x, marked ? 0.03 : 0);
  const Interval height = height_of(lines, axes.log_y);
  std::string script = range("x", width.low, width.high) + range("y", height.low, height.high);
  if (axes.log_x) script += tics_of_x(lines, width);
  if (axes.log_y) script += number_tics("y", decades(height));
  if (!axes.trained) return script;
  const std::string at = number_text(*axes.trained);
  return script + "set arrow from " + at + ", graph 0 to " + at + ", graph 1 nohead lc rgb '#808080' dt 3\n" +
         "set label 'trained to " + at + "' at " + at +
         ", graph 1.02 center font ',10' textcolor rgb '#606060'\n";
}

// True if the curve would hide an earlier one: most of their points coincide.
bool hides(const Curve& line, const Curve& earlier, const Interval& height, bool log) {
  if (line.x != earlier.x) return false;
  const auto place = [&](double value) {
    const auto part = [&](double at) { return log ? std::log(at / height.low) : at - height.low; };
    return part(value) / part(height.high);
  };
  std::size_t meet = 0;
  for (std::size_t i = 0; i < line.y.size(); ++i)
    meet += std::abs(place(line.y[i]) - place(earlier.y[i])) < 0.005 ? 1U : 0U;
  return 2 * meet > line.y.size();
}

}  // namespace

Figure line_chart(const Axes& axes, const std::vector<Curve>& lines) {
  // An empty line separates the names from the axis label.
  Axes spaced = axes;
  spaced.x += "\n ";
  const bool marked =
      std::ranges::all_of(lines, [](const Curve& line) { return line.x.size() <= kFewPoints; });
  const Interval height = height_of(lines, axes.log_y);
  std::string script = frame(lines.size() > 1 ? spaced : axes) + "set grid lc rgb '#e4e4e4'\n", plot, legend;
  script += axes_of(axes, lines, marked);
  if (lines.size() < 2) script += "set key off\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string name = "line" + std::to_string(i);
    std::string data;
    for (std::size_t point = 0; point < lines[i].x.size(); ++point)
      data += number_text(lines[i].x[point]) + " " + number_text(lines[i].y[point]) + "\n";
    script += data_block(name, data);
    const bool dashed =
        std::any_of(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const Curve& line) { return hides(lines[i], line, height, axes.log_y); });
    const std::string points = dashed ? "pt 6 ps 1.3 dt 2" : "pt 7 ps 0.8";
    const std::string style = marked ? "linespoints " + points : std::string(dashed ? "lines dt 2" : "lines");
    const std::string named =
        style + " lw 2 lc rgb '" + colour(i) + "' title " + gnuplot_quote(lines[i].title);
    plot += (i > 0 ? ", $" : "plot $") + name + " using 1:2 with " + named;
    if (lines.size() > 1) legend += named;
  }
  return {.script = script + plot + "\n",
          .text = [=](const TextStyle& style) { return text_line_chart(axes, lines, style); },
          .legend = legend};
}

}  // namespace zoo
