#include "models/tasks/classify.h"

#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/flags.h"
#include "apps/compute/compute.h"
#include "apps/hub/hub_cache.h"
#include "apps/verbs/text/text_input.h"
#include "apps/verbs/verbs.h"
#include "data/base/json.h"
#include "models/tasks/text_model.h"

namespace zoo {
namespace {

constexpr std::size_t kTextsAtOnce = 1024;

struct ClassifyFlags {
  ModelPath model;
  TextFlags text;
  ClassifyRequest request;
  bool json = true;
  ComputeOptions compute;
};

bool read_flags(const Arguments& arguments, ClassifyFlags& values) {
  Flags flags(arguments.command,
              "Labels texts with a sequence-classification model, or words with a token-classification "
              "model. Prints one JSON object per text.");
  add_model_flag(flags, values.model);
  add_text_flags(flags, values.text);
  flags.add("text_pair", values.text.pairs,
            "second text of a pair, for each --text; tables have it under the same name");
  flags.choice(
      "aggregation", values.request.aggregation, aggregation_names(),
      "of token labels, as in transformers: none (each token), simple (tokens of one kind), or words by "
      "their first token, their tokens' average or the surest token");
  flags.add("batch_size", values.request.batch_size, "texts per batch", between(1, kMostBatchRows));
  flags.add("json", values.json, "print JSON; there is no other output");
  flags.add_weights(values.compute);
  flags.add_compute(values.compute);
  flags.example("tzoo classify --model runs/reviews/final --text \"I did not like it\"");
  if (!flags.parse(arguments)) return false;
  if (!values.json) throw UsageError("--no_json: classify prints nothing but JSON");
  return true;
}

}  // namespace

int run_classify(const Arguments& arguments) {
  ClassifyFlags flags;
  if (!read_flags(arguments, flags)) return 0;
  apply_threads(flags.compute);
  const TextModel model = load_text_model(read_checkpoint_config(flags.model), flags.compute);
  require_labels(model);
  const bool words = model.head == Head::kTokenClassification;
  TextInput input(flags.text,
                  words ? Columns{{"tokens"}, {"labels"}} : Columns{{"text"}, {"label", "text_pair"}});
  if (model.tokenizer->encode("", EncodeOptions{}).ids.empty()) input.refuse_empty_lines();
  ClassifyRequest& request = flags.request;
  CutTexts cut;
  for (request.texts = input.next(kTextsAtOnce); !request.texts.empty();
       request.texts = input.next(kTextsAtOnce)) {
    request.pairs = input.pairs();
    for (const auto& json : answers_json(request, classify(model, request, cut.run())))
      std::cout << json_text(json) << "\n";
  }
  cut.note();
  return 0;
}

}  // namespace zoo
