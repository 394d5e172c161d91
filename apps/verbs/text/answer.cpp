#include <algorithm>
#include <iostream>
#include <iterator>

#include <ATen/ops/softmax.h>
#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/command/output.h"
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
  std::int64_t max_answer_length = 15, stride = 128, top_k = 1;
  std::optional<std::int64_t> max_length;
  bool json = false;
  PackedWeights weights;
  ComputeOptions compute;
};

bool read_flags(const Arguments& arguments, AnswerFlags& values) {
  Flags flags(arguments.command,
              "Finds the answer to a question in a text, with a question-answering model.");
  flags.add("model", values.model, "checkpoint directory").placeholder("DIR").required();
  flags.add("question", values.question, "the question").placeholder("TEXT").required();
  flags
      .add("context", values.context,
           "text that holds the answer; - reads it from standard input, FILE:PATH from a file")
      .placeholder("TEXT|-|FILE:PATH")
      .required();
  flags.add("top_k", values.top_k, "number of answers, best first").at_least(1);
  flags.add("max_answer_length", values.max_answer_length, "most tokens in an answer").at_least(1);
  flags
      .add("max_length", values.max_length,
           "tokens of question and text per window; default: the model's limit")
      .at_least(8);
  flags.add("stride", values.stride, "tokens that neighbouring windows of a long text share").at_least(0);
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
  std::string text = context == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : context;
  require_utf8(text, "--context");
  return text;
}

struct Answer {
  ByteRange range;  // in the context
  double score;     // product of the probabilities of first and last token
};

// The question with a part of the context, as one model input.
struct Window {
  Encoding encoding;
  std::uint32_t begin;  // start of the part in the context, in bytes
};

// Windows over the context, each starting `stride` tokens before the end of the previous one.
std::vector<Window> windows_of(const TextModel& model, const AnswerFlags& flags, const std::string& context) {
  EncodeOptions options{.max_length = model.max_length(), .truncation = Truncation::only_second};
  if (flags.max_length)
    options.max_length = std::min(*options.max_length, static_cast<std::size_t>(*flags.max_length));
  std::vector<Window> windows;
  std::uint32_t begin = 0;
  while (true) {
    Window window{model.tokenizer->encode_pair(flags.question, context.substr(begin), options), begin};
    std::vector<ByteRange> tokens;
    for (std::size_t i = 0; i < window.encoding.size(); ++i) {
      if (window.encoding.texts[i] == 1) tokens.push_back(window.encoding.offsets[i]);
    }
    windows.push_back(std::move(window));
    if (tokens.empty()) return windows;
    const std::string_view rest = std::string_view(context).substr(begin + tokens.back().end);
    if (rest.find_first_not_of(" \t\r\n") == std::string_view::npos) return windows;
    const auto shared = std::min(static_cast<std::size_t>(flags.stride), tokens.size() - 1);
    const std::uint32_t next = begin + tokens[tokens.size() - shared - (shared > 0 ? 0 : 1)].begin;
    begin = next > begin ? next : begin + tokens.back().end;
  }
}

// Probabilities of the context's positions.
std::vector<double> probabilities(const at::Tensor& logits, const Encoding& encoding) {
  at::Tensor scores = logits.to(at::kDouble).cpu().clone();
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    if (encoding.texts[i] != 1) scores[static_cast<std::int64_t>(i)].fill_(-1e30);
  }
  scores = at::softmax(scores, 0).contiguous();
  return {scores.const_data_ptr<double>(), scores.const_data_ptr<double>() + encoding.size()};
}

void add_answers(const TextModel& model, const Window& window, std::int64_t longest,
                 std::vector<Answer>& answers) {
  const Encoding* const batch[] = {&window.encoding};
  const ModelOutput output = model.model->forward(batch_of(model, batch));
  const auto start = probabilities(output.start_logits[0], window.encoding);
  const auto end = probabilities(output.end_logits[0], window.encoding);
  for (std::size_t i = 0; i < start.size(); ++i) {
    for (std::size_t j = i; j < std::min(end.size(), i + static_cast<std::size_t>(longest)); ++j) {
      if (window.encoding.texts[i] != 1 || window.encoding.texts[j] != 1) continue;
      const ByteRange range{window.begin + window.encoding.offsets[i].begin,
                            window.begin + window.encoding.offsets[j].end};
      answers.push_back({range, start[i] * end[j]});
    }
  }
}

// The best answers, with each range only once.
std::vector<Answer> best_of(std::vector<Answer> answers, std::size_t most) {
  std::stable_sort(answers.begin(), answers.end(),
                   [](const Answer& a, const Answer& b) { return a.score > b.score; });
  std::vector<Answer> best;
  for (const Answer& answer : answers) {
    const bool known =
        std::any_of(best.begin(), best.end(), [&](const Answer& b) { return b.range == answer.range; });
    if (!known) best.push_back(answer);
    if (best.size() == most) break;
  }
  return best;
}

}  // namespace

int run_answer(const Arguments& arguments) {
  AnswerFlags flags;
  if (!read_flags(arguments, flags)) return 0;
  const at::NoGradGuard no_grad;
  require_utf8(flags.question, "--question");
  const std::string context = read_context(flags.context);
  const TextModel model =
      load_text_model(flags.model, flags.compute, flags.weights, Head::kQuestionAnswering);
  std::vector<Answer> answers;
  for (const Window& window : windows_of(model, flags, context)) {
    add_answers(model, window, flags.max_answer_length, answers);
  }
  if (answers.empty()) throw Error("--context: the text is empty");
  for (const Answer& answer : best_of(std::move(answers), static_cast<std::size_t>(flags.top_k))) {
    Json json;
    add_span(json, context, answer.range);
    json["score"] = answer.score;
    if (flags.json) {
      std::cout << json_text(json) << "\n";
    } else {
      std::cout << json["text"].get<std::string>() << "\n";
    }
  }
  return 0;
}

}  // namespace zoo
