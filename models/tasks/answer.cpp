#include "models/tasks/answer.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>

#include "data/base/field_error.h"
#include "models/model.h"
#include "models/tasks/inference_loading.h"

namespace zoo {
namespace {

constexpr std::size_t kWindowsAtOnce = 8;

struct Span {
  std::size_t first, last;  // tokens of the window
  float score;
};

template <class Scored> void keep_best(std::vector<Scored>& all, std::int64_t most) {
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  all.resize(std::min(all.size(), static_cast<std::size_t>(most)));
}

// Bytes of the context from the first token to the last, or those of their words that lie in the window.
ByteRange range_of(const Encoding& window, Span span, bool align_to_words) {
  if (align_to_words && !window.words.empty()) {
    const auto same_word = [&window](std::size_t a, std::size_t b) {
      return window.texts[a] == window.texts[b] && window.words[a] == window.words[b];
    };
    while (same_word(span.first, span.first - 1)) --span.first;
    while (span.last + 1 < window.size() && same_word(span.last, span.last + 1)) ++span.last;
  }
  return {window.offsets[span.first].begin, window.offsets[span.last].end};
}

// Of the context's tokens and of `cls`, whose position stands for "no answer", by the logits [T] of a window,
// whose second text is the context. Other tokens get -10000, as in the pipeline: unlike -inf, it gives
// numbers if nothing is left.
std::vector<float> probabilities(const at::Tensor& logits, const Encoding& window,
                                 std::optional<TokenId> cls) {
  const at::Tensor scores = logits.to(at::kCPU, at::kFloat).clone();
  for (std::size_t i = 0; i < window.size(); ++i) {
    const bool is_cls = cls && window.ids[i] == *cls;
    if (window.texts[i] != 1 && !is_cls) scores[static_cast<std::int64_t>(i)].fill_(-10000.0);
  }
  const at::Tensor row = at::softmax(scores, 0).contiguous();
  return {row.const_data_ptr<float>(), row.const_data_ptr<float>() + row.numel()};
}

std::vector<Span> best_spans(const Encoding& window, const std::vector<float>& start,
                             const std::vector<float>& end, const AnswerRules& rules) {
  std::vector<Span> spans;
  for (std::size_t i = 1; i < window.size(); ++i) {
    const std::size_t stop = std::min(window.size(), i + static_cast<std::size_t>(rules.max_answer_length));
    for (std::size_t j = i; j < stop && window.texts[i] == 1 && window.texts[j] == 1; ++j)
      if (start[i] * end[j] > 0) spans.push_back({i, j, start[i] * end[j]});
  }
  keep_best(spans, rules.top_k);
  return spans;
}

// Windows over the context, of tokens of one encoding.
std::vector<Encoding> windows_of(const TextModel& model, const AnswerRequest& asked) {
  if (model.tokenizer->limits().pads_left)
    throw Error(model.checkpoint.directory,
                ": its tokenizer's padding_side is 'left': transformers then puts the context ",
                "before the question, which tzoo does not");
  constexpr std::size_t kUsualLength = 384, kUsualStride = 128;  // of transformers' pipeline
  const std::size_t limit = model.max_length();
  const auto length = static_cast<std::size_t>(asked.max_length.value_or(std::min(limit, kUsualLength)));
  if (length > limit)
    throw UnfitField(Field{"max_length"}, ": ", length, " is more than the model's limit of ", limit);
  const auto stride = static_cast<std::size_t>(asked.stride.value_or(std::min(length / 2, kUsualStride)));
  return model.tokenizer->encode_windows(asked.question, asked.context, stride, {.max_length = length});
}

}  // namespace

std::vector<Answer> answer_question(const TextModel& model, const AnswerRequest& asked, const RunPass& run) {
  require_head(model.checkpoint.directory, model.head, {Head::kQuestionAnswering});
  require_in(at_least(1), "top_k", asked.rules.top_k);
  require_in(at_least(1), "max_answer_length", asked.rules.max_answer_length);
  require_in(at_least(1), "max_length", asked.max_length);
  require_in(at_least(0), "stride", asked.stride);
  const std::vector<Encoding> windows = windows_of(model, asked);
  std::ranges::for_each(windows, require_offsets);
  const auto logits_of = [&model](std::span<const Encoding* const> batch) {
    const at::NoGradGuard no_grad;
    const ModelOutput output = model.model->forward(batch_of(model, batch));
    std::vector<at::Tensor> rows = at::stack({output.start_logits, output.end_logits}, 1).unbind();
    for (std::size_t i = 0; i < rows.size(); ++i)  // without the padding
      rows[i] = rows[i].slice(1, 0, static_cast<std::int64_t>(batch[i]->size()));
    return rows;
  };
  const std::vector<at::Tensor> logits =
      run({.compute = logits_of, .model = model.model.get(), .most_texts = kWindowsAtOnce}, windows);
  const auto cls = model.tokenizer->special_id(SpecialToken::cls);
  std::vector<Answer> answers;  // windows that overlap may give the same one twice
  float null_score = 1.0F;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const Encoding& window = windows[i];
    const std::vector<float> start = probabilities(logits[i][0], window, cls);
    const std::vector<float> end = probabilities(logits[i][1], window, cls);
    null_score = std::min(null_score, start[0] * end[0]);
    for (const Span& span : best_spans(window, start, end, asked.rules))
      answers.push_back({range_of(window, span, asked.rules.align_to_words), span.score});
  }
  if (asked.rules.impossible) {
    answers.push_back({{}, null_score});
  } else if (answers.empty()) {
    answers.push_back({});  // [CLS] takes all probability in every window
  }
  keep_best(answers, asked.rules.top_k);
  return answers;
}

}  // namespace zoo
