#pragma once

#include <string>
#include <vector>

#include "apps/plots/figures.h"
#include "apps/plots/gnuplot.h"

namespace zoo {

// Figures as text of at most style.width columns, for terminals without gnuplot. Without colours, shades
// represent values.

/// Values of both ends of the colours: map.low and map.high, or the least and the largest of the cells.
Extent extent_of(const HeatMap& map);

/// With texts, each cell shows its text and value, in several blocks of columns if they are too wide for one.
/// Else shows values if they fit, else shades of two characters per cell, else the largest of the cells that
/// share a character. Columns have labels above them or, if these do not fit, numbers.
std::string text_heat_map(const HeatMap& map, const TextStyle& style);

std::string text_bar_chart(const BarChart& chart, const TextStyle& style);

/// One mark per line, with a legend below.
std::string text_line_chart(const Axes& axes, const std::vector<Curve>& lines, const TextStyle& style);

/// Words at their points; if words overlap, the first one is complete.
std::string text_word_scatter(const Axes& axes, const std::vector<WordPoint>& points, const TextStyle& style);

}  // namespace zoo
