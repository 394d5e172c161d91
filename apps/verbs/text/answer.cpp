#include "models/tasks/answer.h"

#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/flags.h"
#include "apps/command/visible_text.h"
#include "apps/hub/hub_cache.h"
#include "apps/verbs/text/text_input.h"
#include "apps/verbs/verbs.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "models/tasks/text_model.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

int run_answer(const Arguments& arguments) {
  ModelPath model;
  AnswerRequest asked;
  bool json = false;
  ComputeOptions compute;
  Flags flags(arguments.command,
              "Finds the answer to a question in a text, with a question-answering model.");
  add_model_flag(flags, model);
  flags.add("question", asked.question, "the question", {.required = true});
  flags.add("context", asked.context,
            "text that holds the answer; - reads it from standard input, FILE:PATH from a file",
            {.placeholder = "TEXT|-|FILE:PATH", .required = true});
  flags.add("top_k", asked.rules.top_k, "number of answers, best first", at_least(1));
  flags.add("max_answer_length", asked.rules.max_answer_length, "most tokens in an answer", at_least(1));
  flags.add("impossible", asked.rules.impossible,
            "count \"no answer\" among the answers: an empty text with the probability of [CLS]");
  flags.add("align_to_words", asked.rules.align_to_words, "extend an answer to whole words");
  flags.add("max_length", asked.max_length,
            "tokens of question and text per window; default: the model's limit, at most 384", at_least(8));
  flags.add("stride", asked.stride,
            "tokens that neighbouring windows of a long text share; default: half of a window, at most 128",
            at_least(0));
  flags.add("json", json, "print one JSON object per answer");
  flags.example(
      "tzoo answer --model bert-squad --question \"Who created the heaven?\" --context FILE:genesis.txt");
  if (!parse_with_compute(flags, compute, arguments)) return 0;
  if (asked.question.empty()) throw Error("--question: the text is empty");
  asked.context = given_text(asked.context);
  require_utf8(asked.context, "--context");
  if (asked.context.empty()) throw Error("--context: the text is empty");
  const TextModel loaded = load_text_model(read_checkpoint_config(model), compute, Head::kQuestionAnswering);
  for (const auto& answer : answers_json(asked, answer_question(loaded, asked)))
    std::cout << (json ? json_text(answer) : written_text(answer["text"].get<std::string>())) << "\n";
  return 0;
}

}  // namespace zoo
