#pragma once

#include <filesystem>

namespace zoo {

/// Plots training and validation loss of a metrics.jsonl over iterations as a PNG. Throws Error if gnuplot is
/// not installed or there is nothing to plot.
void plot_loss(const std::filesystem::path& metrics, const std::filesystem::path& output);

}  // namespace zoo
