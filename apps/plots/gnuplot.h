#pragma once

#include <filesystem>
#include <string>

namespace zoo {

/// Runs gnuplot on a script that writes `$OUTPUT` (a variable set before the script), a PNG or SVG by its
/// name's end; the file appears whole or not at all. Throws Error if gnuplot is not installed or refuses the
/// script.
void gnuplot(const std::string& script, const std::filesystem::path& output);

/// `text` as a gnuplot string in single quotes.
std::string gnuplot_quote(const std::string& text);

}  // namespace zoo
