#pragma once

#include <filesystem>
#include <string>

#include "data/base/error.h"

namespace zoo {

/// gnuplot is not installed, so no figure can be drawn.
struct GnuplotMissing : Error {
  using Error::Error;
};

/// Runs gnuplot on a script that writes `$OUTPUT` (a variable set before the script), a PNG or SVG by its
/// file extension; the file appears atomically. Throws GnuplotMissing, or Error if the folder cannot be
/// written or gnuplot rejects the script.
void gnuplot(const std::string& script, const std::filesystem::path& output);

/// Quotes any `text` as a gnuplot string.
std::string gnuplot_quote(const std::string& text);

}  // namespace zoo
