#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/plots/figures.h"
#include "data/base/error.h"

namespace zoo {

struct GnuplotMissing : Error {
  using Error::Error;
};

/// Runs gnuplot on a script that writes `$OUTPUT` (a variable set before the script), a PNG or SVG by its
/// file extension; the file appears atomically. Throws GnuplotMissing, or Error if the folder cannot be
/// written or gnuplot rejects the script.
void gnuplot(const std::string& script, const std::filesystem::path& output);

std::string gnuplot_quote(const std::string& text);

/// A colour "#rrggbb" for each group or curve; they repeat.
std::string colour(std::size_t group);

std::string number_text(double value);

inline std::string data_block(const std::string& name, const std::string& lines) {
  return "$" + name + " << END_OF_DATA\n" + lines + "END_OF_DATA\n";
}

/// Border, title and labels of the axes.
std::string frame(const Axes& axes);

/// A label at each of 0, 1, …, without a mark, such as: set xtics scale 0 ("iron" 0, "man" 1)
std::string tics(const std::string& axis, const std::vector<std::string>& labels);

/// A tic at each number, which is its label.
std::string number_tics(const std::string& axis, const std::vector<double>& numbers);

inline std::string range(const std::string& axis, double low, double high) {
  return "set " + axis + "range [" + number_text(low) + ":" + number_text(high) + "]\n";
}

}  // namespace zoo
