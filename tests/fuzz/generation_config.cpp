#include "models/generation/generate.h"
#include "models/inference/packed_decoder.h"
#include "models/tasks/generation_settings.h"
#include "tests/fuzz/file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/models/support.h"

namespace {

zoo::DecodingModel& decoder() {
  static const auto model =
      zoo::test::random_model("gpt2", zoo::test::small_config(), zoo::Head::kCausalLm, /*seed=*/1);
  static const auto packed = zoo::pack(*model, {});
  return *packed;
}

}  // namespace

// What a generation_config.json asks for is refused, or generated, up to a few steps.
void zoo::fuzz::read(std::string_view input) {
  write("generation_config.json", input);
  const GenerationConfig config = read_generation_config(directory().path(), nullptr);
  GenerationSettings settings;
  apply_generation_config(settings, config, [](std::string_view) { return false; });
  const GenerationDefaults defaults = defaults_of(config);
  const std::vector<TokenIds> prompts{{1, 2, 3}, {4}};
  GenerationOptions options = settings.generation_options();
  options.max_new_tokens = settings.new_token_limit(3);
  options.eos_token_ids = defaults.eos_token_ids;
  int steps = 0;
  options.interrupted = [&] { return ++steps > 5; };
  generate(decoder(), prompts, options);
}
