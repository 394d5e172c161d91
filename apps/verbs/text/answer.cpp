#include "models/tasks/answer.h"

#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/flags.h"
#include "apps/command/visible_text.h"
#include "apps/compute/compute.h"
#include "apps/hub/hub_cache.h"
#include "apps/verbs/text/text_input.h"
#include "apps/verbs/verbs.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "models/tasks/text_model.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

struct AnswerFlags {
  ModelPath model;
  AnswerRequest asked;
  bool json = false;
  ComputeOptions compute;
};

bool read_flags(const Arguments& arguments, AnswerFlags& values) {
  Flags flags(arguments.command,
              "Finds the answer to a question in a text, with a question-answering model.");
  add_model_flag(flags, values.model);
  flags.add("question", values.asked.question, "the question", {.required = true});
  flags.add("context", values.asked.context,
            "text that holds the answer; - reads it from standard input, FILE:PATH from a file",
            {.placeholder = "TEXT|-|FILE:PATH", .required = true});
  flags.add("top_k", values.asked.rules.top_k, "number of answers, best first", at_least(1));
  flags.add("max_answer_length", values.asked.rules.max_answer_length, "most tokens in an answer",
            at_least(1));
  flags.add("impossible", values.asked.rules.impossible,
            "count \"no answer\" among the answers: an empty text with the probability of [CLS]");
  flags.add("align_to_words", values.asked.rules.align_to_words, "extend an answer to whole words");
  flags.add("max_length", values.asked.max_length,
            "tokens of question and text per window; default: the model's limit, at most 384", at_least(8));
  flags.add("stride", values.asked.stride,
            "tokens that neighbouring windows of a long text share; default: half of a window, at most 128",
            at_least(0));
  flags.add("json", values.json, "print one JSON object per answer");
  flags.add_weights(values.compute);
  flags.add_compute(values.compute);
  flags.example(
      "tzoo answer --model bert-squad --question \"Who created the heaven?\" --context FILE:genesis.txt");
  return flags.parse(arguments);
}

}  // namespace

int run_answer(const Arguments& arguments) {
  AnswerFlags flags;
  if (!read_flags(arguments, flags)) return 0;
  apply_threads(flags.compute);
  AnswerRequest& asked = flags.asked;
  require_utf8(asked.question, "--question");
  if (asked.question.empty()) throw Error("--question: the text is empty");
  asked.context = given_text(asked.context);
  require_utf8(asked.context, "--context");
  if (asked.context.empty()) throw Error("--context: the text is empty");
  const TextModel model =
      load_text_model(read_checkpoint_config(flags.model), flags.compute, Head::kQuestionAnswering);
  for (const auto& json : answers_json(asked, answer_question(model, asked))) {
    if (flags.json) {
      std::cout << json_text(json) << "\n";
    } else {
      std::cout << written_text(json["text"].get<std::string>()) << "\n";
    }
  }
  return 0;
}

}  // namespace zoo
