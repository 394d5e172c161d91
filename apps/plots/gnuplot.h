#pragma once

#include <filesystem>
#include <string>

#include "data/base/error.h"

namespace zoo {

/// gnuplot is not installed: nothing can be drawn, whatever the figure.
struct GnuplotMissing : Error {
  using Error::Error;
};

/// Runs gnuplot on a script that writes `$OUTPUT` (a variable set before the script), a PNG or SVG by its
/// name's end; the file appears whole or not at all. Throws GnuplotMissing, or Error if the folder
/// cannot be written or gnuplot refuses the script.
void gnuplot(const std::string& script, const std::filesystem::path& output);

/// `text` as a gnuplot string, whatever it holds.
std::string gnuplot_quote(const std::string& text);

}  // namespace zoo
