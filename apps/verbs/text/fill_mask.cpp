#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/hub/find_model.h"
#include "apps/verbs/text/mask_guesses.h"
#include "apps/verbs/text/text_input.h"
#include "apps/verbs/text/text_model.h"
#include "apps/verbs/verbs.h"
#include "data/base/error.h"
#include "data/base/json_text.h"

namespace zoo {
namespace {

struct FillMaskFlags {
  std::filesystem::path model;
  TextFlags text;
  std::int64_t top_k = 5;
  bool json = false;
  PackedWeights weights;
  ComputeOptions compute;
};

bool read_flags(const Arguments& arguments, FillMaskFlags& values) {
  Flags flags(arguments.command,
              "Predicts the words at the mask tokens of a text with a masked language model.");
  add_model_flag(flags, values.model);
  add_text_flags(flags, values.text);
  flags.add("top_k", values.top_k, "number of predictions per mask").at_least(1);
  flags.add("json", values.json, "print one JSON object per text instead of a table");
  values.weights.add_to(flags);
  flags.add_compute(values.compute);
  flags.example("tzoo fill-mask --model bert-base-uncased --text \"Paris is the [MASK] of France.\"");
  return flags.parse(arguments);
}

void print_table(const TextModel& model, const MaskedText& masked) {
  Table table({number("probability"), {"token"}, {"text"}});
  for (std::size_t i = 0; i < masked.guesses.size(); ++i) {
    for (const MaskGuess& guess : masked.guesses[i]) {
      std::array<char, 16> probability{};
      std::snprintf(probability.data(), probability.size(), "%.4f", static_cast<double>(guess.probability));
      table.row(
          {probability.data(), model.tokenizer->token_text(guess.id), filled(model, masked, i, guess.id)});
    }
  }
  table.print(std::cout);
}

}  // namespace

int run_fill_mask(const Arguments& arguments) {
  FillMaskFlags flags;
  if (!read_flags(arguments, flags)) return 0;
  const at::NoGradGuard no_grad;
  const TextModel model =
      load_text_model(read_checkpoint_config(flags.model), flags.compute, flags.weights, Head::kMaskedLm);
  if (!model.tokenizer->special_id(SpecialToken::mask))
    throw Error("--model: the tokenizer in ", flags.model, " has no mask token");
  TextInput input(flags.text, {{"text"}});
  for (auto texts = input.next(1); !texts.empty(); texts = input.next(1)) {
    const MaskedText masked = guess_masks(model, texts[0], flags.top_k);
    if (flags.json) {
      std::cout << json_text(describe_masks(model, texts[0], masked)) << "\n";
    } else {
      print_table(model, masked);
    }
  }
  return 0;
}

}  // namespace zoo
