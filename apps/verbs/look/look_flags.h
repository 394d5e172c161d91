#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "apps/command/flags.h"
#include "apps/plots/figures.h"
#include "models/tasks/look_texts.h"

namespace zoo {

/// Flags that the verbs share which look inside a model while it reads a text.
struct LookFlags {
  ModelPath model;
  std::filesystem::path out_dir;
  ModelTexts texts;
  std::optional<std::int64_t> position;  // of the answer
  std::string format = "both";
  bool json = false;
  ComputeOptions compute{.device = "cpu"};

  /// The groups "Input" and "Output". `files`: what --out_dir, by default `folder`, receives.
  void add_input(Flags& flags, const std::string& text_help =
                                   "text that the model reads; for an "
                                   "encoder-decoder, its encoder");
  void add_output(Flags& flags, const std::string& folder, const std::string& files);
  void add_position(Flags& flags);
  /// flags.parse(), then throws UsageError for --json with --format terminal.
  bool parse(Flags& flags, const Arguments& arguments) const;
  /// After what stands on standard output, writes NAME.json to out_dir and says so; then draws the figure
  /// there, unless it is only for the terminal.
  void write(const std::string& name, const std::string& json, const std::optional<Figure>& figure) const;
};

/// A heat map of numbers [layers, columns], whose colours reach at least `least` on both sides of 0. Columns
/// without names in `map` are numbered.
Figure layers_figure(HeatMap map, const at::Tensor& numbers, double least);

/// The model, as modules.
LookedModel load_looked_model(const LookFlags& flags);

}  // namespace zoo
