#pragma once

#include <filesystem>
#include <string>

#include "apps/command/flags.h"
#include "apps/plots/figures.h"

namespace zoo {

/// Adds --format both|png|svg|terminal.
void add_format_flag(Flags& flags, std::string& format);

/// Draws the figure as `stem`.png, `stem`.svg or both, and prints their names on standard error; "terminal"
/// prints text instead, coloured on a terminal. Flushes standard output first. Without gnuplot it prints a
/// note and draws nothing; throws Error if the folder cannot be written.
void show_figure(const Figure& figure, const std::filesystem::path& stem, const std::string& format);

}  // namespace zoo
