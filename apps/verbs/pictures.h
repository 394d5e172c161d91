#pragma once

#include <filesystem>
#include <string>

#include "apps/command/flags.h"
#include "apps/plots/figures.h"

namespace zoo {

/// --format both|png|svg|terminal.
void add_format_flag(Flags& flags, std::string& format);

/// Draws the figure as `stem`.png and `stem`.svg, or one of them, and names the files on standard error;
/// "terminal" prints it as text instead, in colours where standard output is a terminal. Without gnuplot that
/// is said and nothing is drawn; a folder that cannot be written throws Error. What was printed before has
/// then been written.
void show_figure(const Figure& figure, const std::filesystem::path& stem, const std::string& format);

}  // namespace zoo
