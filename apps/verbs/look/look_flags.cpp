#include "apps/verbs/look/look_flags.h"

#include <algorithm>
#include <iostream>
#include <iterator>

#include "apps/answers/answers.h"
#include "apps/compute/compute.h"
#include "apps/hub/hub_cache.h"
#include "data/base/atomic_file.h"

namespace zoo {

void LookFlags::add_input(Flags& flags, const std::string& text_help) {
  flags.group("Input");
  add_model_flag(flags, model);
  flags.add("text", texts.text, text_help, {.required = true});
  flags.add("text_pair", texts.text_pair, "second text, for an encoder");
  flags.add("target", texts.target,
            "text that the decoder of an encoder-decoder has written; default: what the model generates");
  flags.add("max_new_tokens", texts.max_new_tokens, "most tokens to generate where --target is not given",
            at_least(1));
}

void LookFlags::add_output(Flags& flags, const std::string& folder, const std::string& files) {
  out_dir = folder;
  flags.group("Output");
  flags.add("out_dir", out_dir, "directory for " + files, {.placeholder = "DIR"});
  add_format_flag(flags, format);
  flags.add("json", json, "print the numbers as JSON");
  flags.add_compute(compute);
}

void LookFlags::add_position(Flags& flags) {
  flags.add("position", position, "position of the answer; default: the first mask token, or the last token",
            at_least(0));
}

bool LookFlags::parse(Flags& flags, const Arguments& arguments) const {
  if (!flags.parse(arguments)) return false;
  if (json && format == "terminal") throw UsageError("--format terminal: cannot be combined with --json");
  return true;
}

void LookFlags::write(const std::string& name, const std::string& json,
                      const std::optional<Figure>& figure) const {
  std::cout.flush();
  const std::filesystem::path file = out_dir / (name + ".json");
  make_directories(out_dir);
  write_file(file, json);
  std::cerr << "numbers: " << file.string() << "\n";
  if (figure && format != "terminal") show_figure(*figure, out_dir / name, format);
}

Figure layers_figure(HeatMap map, const at::Tensor& numbers, double least) {
  const std::int64_t columns = numbers.size(1);
  map.cells = matrix_of(numbers);
  for (std::int64_t layer = 0; layer < numbers.size(0); ++layer) map.rows.push_back(std::to_string(layer));
  for (std::int64_t i = std::ssize(map.columns); i < columns; ++i) map.columns.push_back(std::to_string(i));
  map.high = std::max(least, numbers.abs().max().item<double>());
  map.low = -map.high;
  map.values = columns <= 24;
  Figure figure = heat_map(map);
  figure.width = std::clamp(220 + 56 * static_cast<int>(columns), 560, 8000);
  figure.height = std::clamp(220 + 30 * static_cast<int>(numbers.size(0)), 320, 6000);
  return figure;
}

LookedModel load_looked_model(const LookFlags& flags) {
  apply_threads(flags.compute);
  LookedModel loaded = load_looked_model(flags.model, flags.compute);
  if (reads_target(loaded.model) && !flags.texts.target && loaded.model.head != Head::kSeq2SeqLm)
    throw UsageError("missing flag '--target': without a language model head the decoder cannot generate it");
  return loaded;
}

}  // namespace zoo
