#include "models/tasks/classify.h"

#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/flags.h"
#include "apps/hub/hub_cache.h"
#include "apps/verbs/text/text_input.h"
#include "apps/verbs/verbs.h"
#include "data/base/json.h"
#include "models/tasks/text_model.h"

namespace zoo {
int run_classify(const Arguments& arguments) {
  ModelPath model;
  TextFlags text;
  ClassifyRequest request;
  bool json = true;
  ComputeOptions compute;
  Flags flags(arguments.command,
              "Labels texts with a sequence-classification model, or words with a token-classification "
              "model. Prints one JSON object per text.");
  add_model_flag(flags, model);
  add_text_flags(flags, text);
  flags.add("text_pair", text.pairs,
            "second text of a pair, for each --text; tables have it under the same name");
  flags.choice(
      "aggregation", request.aggregation, aggregation_names(),
      "of token labels, as in transformers: none (each token), simple (tokens of one kind), or words by "
      "their first token, their tokens' average or the surest token");
  flags.add("batch_size", request.batch_size, "texts per batch", between(1, kMostBatchRows));
  flags.add("json", json, "print JSON; there is no other output");
  flags.example("tzoo classify --model runs/reviews/final --text \"I did not like it\"");
  if (!parse_with_compute(flags, compute, arguments)) return 0;
  if (!json) throw UsageError("--no_json: classify prints nothing but JSON");
  const TextModel loaded = load_text_model(read_checkpoint_config(model), compute);
  require_labels(loaded);
  const bool words = loaded.head == Head::kTokenClassification;
  const bool reads_empty = !loaded.tokenizer->encode("", EncodeOptions{}).ids.empty();
  TextInput input(text, words ? Columns{{"tokens"}, {"labels"}} : Columns{{"text"}, {"label", "text_pair"}},
                  reads_empty);
  constexpr std::size_t kTextsAtOnce = 1024;
  CutTexts cut;
  for (request.texts = input.next(kTextsAtOnce); !request.texts.empty();
       request.texts = input.next(kTextsAtOnce)) {
    request.pairs = input.pairs();
    for (const auto& labels : answers_json(request, classify(loaded, request, cut.run())))
      std::cout << json_text(labels) << "\n";
  }
  cut.note();
  return 0;
}

}  // namespace zoo
