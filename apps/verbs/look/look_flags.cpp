#include "apps/verbs/look/look_flags.h"

#include "apps/hub/find_model.h"
#include "apps/verbs/pictures.h"

namespace zoo {

void LookFlags::add_input(Flags& flags, const std::string& text_help) {
  flags.group("Input");
  add_model_flag(flags, model);
  flags.add("text", texts.text, text_help).placeholder("TEXT").required();
  flags.add("text_pair", texts.text_pair, "second text, for an encoder").placeholder("TEXT");
  flags
      .add("target", texts.target,
           "text that the decoder of an encoder-decoder has written; default: what the model generates")
      .placeholder("TEXT");
  flags.add("max_new_tokens", texts.max_new_tokens, "most tokens to generate where --target is not given")
      .at_least(1);
}

void LookFlags::add_output(Flags& flags, const std::string& files) {
  flags.group("Output");
  flags.add("out_dir", out_dir, "directory for " + files).placeholder("DIR");
  add_format_flag(flags, format);
  flags.add("json", json, "print the numbers as JSON");
  flags.add_compute(compute);
}

void LookFlags::check() const {
  if (json && format == "terminal") throw UsageError("--format terminal: cannot be combined with --json");
}

LookedModel load_looked_model(const LookFlags& flags) {
  LookedModel loaded{.model = load_text_model(read_checkpoint_config(flags.model), flags.compute)};
  loaded.defaults = defaults_of(read_generation_config(flags.model, loaded.model.checkpoint.json));
  return loaded;
}

}  // namespace zoo
