#include "models/tasks/answer_spans.h"

#include <algorithm>

#include <ATen/ops/softmax.h>

namespace zoo {
namespace {

struct Span {
  std::size_t first, last;  // tokens of the window
  float score;
};

template <class Scored>
void keep_best(std::vector<Scored>& all, std::int64_t most) {
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  all.resize(std::min(all.size(), static_cast<std::size_t>(most)));
}

// Bytes of the context from the first token to the last, or from the first one's word to the last one's as
// far as they lie in the window.
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

}  // namespace

// The other tokens' logits become -10000, as in the pipeline: unlike -inf, it gives numbers if nothing is
// left.
std::vector<float> AnswerCollector::probabilities(const at::Tensor& logits, const Encoding& window) const {
  const at::Tensor scores = logits.to(at::kCPU, at::kFloat).clone();
  for (std::size_t i = 0; i < window.size(); ++i) {
    const bool is_cls = cls_ && window.ids[i] == *cls_;
    if (window.texts[i] != 1 && !is_cls) scores[static_cast<std::int64_t>(i)].fill_(-10000.0);
  }
  const at::Tensor row = at::softmax(scores, 0).contiguous();
  return {row.const_data_ptr<float>(), row.const_data_ptr<float>() + row.numel()};
}

void AnswerCollector::add(const Encoding& window, const SpanLogits& logits) {
  const std::vector<float> start = probabilities(logits.start, window);
  const std::vector<float> end = probabilities(logits.end, window);
  null_score_ = std::min(null_score_, start[0] * end[0]);
  std::vector<Span> spans;
  for (std::size_t i = 1; i < window.size(); ++i) {
    const std::size_t stop = std::min(window.size(), i + static_cast<std::size_t>(rules_.max_answer_length));
    for (std::size_t j = i; j < stop && window.texts[i] == 1 && window.texts[j] == 1; ++j) {
      if (start[i] * end[j] > 0) spans.push_back({i, j, start[i] * end[j]});
    }
  }
  keep_best(spans, rules_.top_k);
  for (const Span& span : spans)
    answers_.push_back({range_of(window, span, rules_.align_to_words), span.score});
}

std::vector<Answer> AnswerCollector::best() const {
  std::vector<Answer> answers = answers_;
  if (rules_.impossible) {
    answers.push_back({{}, null_score_});
  } else if (answers.empty()) {
    answers.push_back({});  // [CLS] takes all probability in every window
  }
  keep_best(answers, rules_.top_k);
  return answers;
}

}  // namespace zoo
