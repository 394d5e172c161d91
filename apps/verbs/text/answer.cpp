#include <algorithm>
#include <iostream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/command/lines.h"
#include "apps/command/visible_text.h"
#include "apps/hub/find_model.h"
#include "apps/verbs/text/context_question.h"
#include "apps/verbs/text/text_model.h"
#include "apps/verbs/text/text_spans.h"
#include "apps/verbs/verbs.h"
#include "data/base/error.h"
#include "data/base/json_text.h"
#include "data/corpora/text_file.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

struct AnswerFlags {
  std::filesystem::path model;
  std::string question, context;
  AnswerRules rules;
  std::optional<std::int64_t> max_length, stride;
  bool json = false;
  PackedWeights weights;
  ComputeOptions compute;
};

bool read_flags(const Arguments& arguments, AnswerFlags& values) {
  Flags flags(arguments.command,
              "Finds the answer to a question in a text, with a question-answering model.");
  add_model_flag(flags, values.model);
  flags.add("question", values.question, "the question").placeholder("TEXT").required();
  flags
      .add("context", values.context,
           "text that holds the answer; - reads it from standard input, FILE:PATH from a file")
      .placeholder("TEXT|-|FILE:PATH")
      .required();
  flags.add("top_k", values.rules.top_k, "number of answers, best first").at_least(1);
  flags.add("max_answer_length", values.rules.max_answer_length, "most tokens in an answer").at_least(1);
  flags.add("impossible", values.rules.impossible,
            "count \"no answer\" among the answers: an empty text with the probability of [CLS]");
  flags.add("align_to_words", values.rules.align_to_words, "extend an answer to whole words");
  flags
      .add("max_length", values.max_length,
           "tokens of question and text per window; default: the model's limit, at most 384")
      .at_least(8);
  flags
      .add("stride", values.stride,
           "tokens that neighbouring windows of a long text share; default: half of a window, at most 128")
      .at_least(0);
  flags.add("json", values.json, "print one JSON object per answer");
  values.weights.add_to(flags);
  flags.add_compute(values.compute);
  flags.example(
      "tzoo answer --model bert-squad --question \"Who created the heaven?\" --context FILE:genesis.txt");
  return flags.parse(arguments);
}

std::string read_context(const std::string& context) {
  constexpr std::string_view kFile = "FILE:";
  if (context.starts_with(kFile)) return read_text(context.substr(kFile.size()));
  std::string text = context == "-" ? read_standard_input() : context;
  require_utf8(text, "--context");
  return text;
}

}  // namespace

int run_answer(const Arguments& arguments) {
  AnswerFlags flags;
  if (!read_flags(arguments, flags)) return 0;
  const at::NoGradGuard no_grad;
  require_utf8(flags.question, "--question");
  if (flags.question.empty()) throw Error("--question: the text is empty");
  const std::string context = read_context(flags.context);
  if (context.empty()) throw Error("--context: the text is empty");
  const TextModel model = load_text_model(read_checkpoint_config(flags.model), flags.compute, flags.weights,
                                          Head::kQuestionAnswering);
  const ContextQuestion asked{
      .question = flags.question, .context = context, .max_length = flags.max_length, .stride = flags.stride};
  for (const Answer& answer : answer_question(model, asked, flags.rules)) {
    Json json;
    add_span(json, context, answer.range);
    json["score"] = answer.score;
    if (flags.json) {
      std::cout << json_text(json) << "\n";
    } else {
      std::cout << written_text(json["text"].get<std::string>()) << "\n";
    }
  }
  return 0;
}

}  // namespace zoo
