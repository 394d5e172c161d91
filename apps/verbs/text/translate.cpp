#include "models/tasks/translate.h"

#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/flags.h"
#include "apps/command/visible_text.h"
#include "apps/compute/compute.h"
#include "apps/hub/hub_cache.h"
#include "apps/verbs/generate/generate_flags.h"
#include "apps/verbs/text/text_input.h"
#include "apps/verbs/verbs.h"
#include "data/base/json.h"
#include "models/generation/generate.h"

namespace zoo {

int run_translate(const Arguments& arguments) {
  GenerateFlags generation{translation_settings()};
  TextFlags text;
  std::string prefix, source_lang, target_lang;
  std::int64_t batch_size = 16;
  bool json = false;
  Flags flags(
      arguments.command,
      "Translates or summarises texts with an encoder-decoder such as T5, as its generation_config.json "
      "says (number of beams, penalties, …), else by greedy decoding.");
  flags.group("Input");
  add_model_flag(flags, generation.model);
  add_text_flags(flags, text);
  flags.add("prefix", prefix, "task put before each text, such as T5's \"translate English to German: \"");
  flags.add("source_lang", source_lang,
            "language of the texts, for M2M-100, NLLB and mBART: en, eng_Latn, en_XX; none: the tokenizer's",
            {.placeholder = "LANG"});
  flags.group("Output");
  flags.add("target_lang", target_lang,
            "language of the translations: the first token that is written, or Marian's >>LANG<< before the "
            "text",
            {.placeholder = "LANG"});
  flags.add("max_new_tokens", generation.options.max_new_tokens,
            "most tokens to generate per text; an end token stops earlier", at_least(1));
  flags.choice("generation_defaults", generation.generation_defaults, {"file", "ours"},
               "file: what the checkpoint's generation_config.json says; ours: greedy decoding");
  flags.add("num_beams", generation.options.beams.num_beams, "number of beams; 1: no beam search",
            between(1, BeamOptions::kMostBeams));
  flags.add("batch_size", batch_size, "texts per batch", between(1, kMostBatchRows));
  flags.add("json", json, "print one JSON object per text instead of the new text alone");
  flags.add_weights(generation.compute);
  flags.add_cache(generation.compute);
  flags.add_compute(generation.compute);
  flags.example(
      "tzoo translate --model t5-small --prefix \"translate English to German: \" --text \"Good day.\"");
  flags.example(
      "tzoo translate --model nllb-200 --source_lang eng_Latn --target_lang fra_Latn --text \"Good day.\"");
  if (!flags.parse(arguments)) return 0;
  apply_generation_config(generation, flags);
  generation.options.sampling.seed = static_cast<std::uint64_t>(generation.compute.seed);
  apply_threads(generation.compute);
  TextTranslator model(*generation.checkpoint,
                       translation_options(generation, *generation.checkpoint, *generation.generation_config),
                       generation.compute);
  TextInput input(text, {{"source"}, {"target"}});
  const auto most = static_cast<std::size_t>(batch_size);
  for (auto texts = input.next(most); !texts.empty(); texts = input.next(most)) {
    const auto translations = model.translate({.texts = texts,
                                               .prefix = prefix,
                                               .source_lang = source_lang,
                                               .target_lang = target_lang,
                                               .batch_size = batch_size});
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto& [translation, ids] = translations[i];
      if (json) std::cout << json_text(translation_json(texts[i], translation, ids)) << "\n";
      else std::cout << written_text(translation) << "\n";
    }
    std::cout.flush();
  }
  return 0;
}

}  // namespace zoo
