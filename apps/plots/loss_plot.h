#pragma once

#include <filesystem>

namespace zoo {

/// Draws training and validation loss over the iterations of a metrics.jsonl into a PNG.
/// Throws Error if gnuplot is not installed, or there is nothing to draw.
void plot_loss(const std::filesystem::path& metrics, const std::filesystem::path& output);

}  // namespace zoo
