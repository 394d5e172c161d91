#include "models/tasks/fill_mask.h"

#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/hub/hub_cache.h"
#include "apps/verbs/text/text_input.h"
#include "apps/verbs/verbs.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "models/tasks/text_model.h"

namespace zoo {
namespace {

void print_table(const std::vector<std::vector<MaskGuess>>& masks) {
  Table table({number("probability"), {"token"}, {"text"}});
  for (const auto& guesses : masks) {
    for (const MaskGuess& guess : guesses)
      table.row({decimal(guess.probability, 4), guess.token, guess.text});
  }
  table.print(std::cout);
}

}  // namespace

int run_fill_mask(const Arguments& arguments) {
  ModelPath model;
  TextFlags text;
  FillMaskRequest request;
  bool json = false;
  ComputeOptions compute;
  Flags flags(arguments.command,
              "Predicts the words at the mask tokens of a text with a masked language model.");
  add_model_flag(flags, model);
  add_text_flags(flags, text);
  flags.add("top_k", request.top_k, "number of predictions per mask", at_least(1));
  flags.add("json", json, "print one JSON object per text instead of a table");
  flags.example("tzoo fill-mask --model bert-base-uncased --text \"Paris is the [MASK] of France.\"");
  if (!parse_with_compute(flags, compute, arguments)) return 0;
  const TextModel loaded = load_text_model(read_checkpoint_config(model), compute, Head::kMaskedLm);
  if (!loaded.tokenizer->special_id(SpecialToken::mask))
    throw Error("--model: the tokenizer in ", model, " has no mask token");
  TextInput input(text, {{"text"}});
  for (auto texts = input.next(1); !texts.empty(); texts = input.next(1)) {
    request.text = texts[0];
    const auto masks = fill_mask(loaded, request);
    if (json) std::cout << json_text(answer_json(request, masks)) << "\n";
    else print_table(masks);
  }
  return 0;
}

}  // namespace zoo
