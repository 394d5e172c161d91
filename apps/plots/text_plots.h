#pragma once

#include <string>
#include <vector>

#include "apps/plots/figures.h"

namespace zoo {

// The figures as lines of text, each as wide as style.width at most: for a terminal, where nothing else is
// there to draw them. Without colours shades stand for values.

/// The values where they fit, else shades of two characters a cell, else the largest of the cells that share
/// a character. Columns have their labels above them or, where these do not fit, their numbers.
std::string text_heat_map(const HeatMap& map, const TextStyle& style);

std::string text_bar_chart(const BarChart& chart, const TextStyle& style);

/// A mark for each line, named below.
std::string text_line_chart(const Axes& axes, const std::vector<Line>& lines, const TextStyle& style);

/// Words at their places; of those that meet, the first is whole.
std::string text_word_scatter(const Axes& axes, const std::vector<WordPoint>& points, const TextStyle& style);

}  // namespace zoo
