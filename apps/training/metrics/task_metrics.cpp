#include "apps/training/metrics/task_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include <ATen/ops/one_hot.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>

#include "data/base/lines.h"

namespace zoo {
namespace {

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

double harmonic_mean(double right, double predicted, double wanted) {
  return ratio(2 * right, predicted + wanted);
}

/// Token predictions of a language model.
class TokenMetric final : public Metric {
 public:
  TokenMetric(bool counts_tokens, bool counts_rows, double bytes_per_token)
      : counts_tokens_(counts_tokens), counts_rows_(counts_rows), bytes_per_token_(bytes_per_token) {}

  void add(const ModelInputs& inputs, const ModelOutput& output) override {
    if (!counts_tokens_) return;
    at::Tensor labels = inputs.labels;
    if (inputs.label_positions.defined()) labels = labels.flatten().index_select(0, inputs.label_positions);
    const at::Tensor counts = labels.ne(-100), right = output.logits.argmax(-1).eq(labels);
    tokens_ += counts.sum().item<double>();
    right_tokens_ += right.logical_and(counts).sum().item<double>();
    if (!counts_rows_) return;
    rows_ += static_cast<double>(labels.size(0));
    right_rows_ += right.logical_or(counts.logical_not()).all(-1).sum().item<double>();
  }

  std::vector<Score> take(double loss) override {
    std::vector<Score> scores{{"perplexity", std::exp(loss)}};
    if (bytes_per_token_ > 0) scores.push_back({"bits_per_byte", loss / std::log(2.0) / bytes_per_token_});
    if (counts_tokens_) scores.push_back({"accuracy", ratio(right_tokens_, tokens_)});
    if (counts_rows_) scores.push_back({"exact_match", ratio(right_rows_, rows_)});
    tokens_ = right_tokens_ = rows_ = right_rows_ = 0;
    return scores;
  }

  std::vector<double*> totals() override { return {&tokens_, &right_tokens_, &rows_, &right_rows_}; }

 private:
  bool counts_tokens_, counts_rows_;
  double bytes_per_token_;
  double tokens_ = 0, right_tokens_ = 0, rows_ = 0, right_rows_ = 0;
};

/// Text classes, or with `several` any number of labels for each text.
class ClassMetric final : public Metric {
 public:
  ClassMetric(std::size_t classes, bool several)
      : several_(several), right_(classes), predicted_(classes), wanted_(classes) {}

  void add(const ModelInputs& inputs, const ModelOutput& output) override {
    const auto classes = std::ssize(wanted_);
    const auto one_hot = [&](const at::Tensor& ids) { return at::one_hot(ids, classes); };
    const at::Tensor found = several_ ? output.logits.gt(0).to(at::kLong) : one_hot(output.logits.argmax(-1));
    const at::Tensor labels = several_ ? inputs.labels.to(at::kLong) : one_hot(inputs.labels);
    rows_ += static_cast<double>(labels.size(0));
    right_rows_ += found.eq(labels).all(-1).sum().item<double>();
    const auto count = [](const at::Tensor& counted, std::vector<double>& counts) {
      const at::Tensor sums = counted.sum(0).to(at::kCPU, at::kDouble);
      for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += sums.const_data_ptr<double>()[i];
    };
    count(found * labels, right_);
    count(found, predicted_);
    count(labels, wanted_);
  }

  std::vector<Score> take(double) override {
    double f1 = 0, classes = 0, right = 0, predicted = 0, wanted = 0;
    for (std::size_t i = 0; i < right_.size(); ++i) {
      f1 += harmonic_mean(right_[i], predicted_[i], wanted_[i]);
      classes += several_ || predicted_[i] + wanted_[i] > 0 ? 1 : 0;
      right += std::exchange(right_[i], 0);
      predicted += std::exchange(predicted_[i], 0);
      wanted += std::exchange(wanted_[i], 0);
    }
    std::vector<Score> scores{{"accuracy", ratio(right_rows_, rows_)}, {"f1", ratio(f1, classes)}};
    if (several_) scores.push_back({"f1_micro", harmonic_mean(right, predicted, wanted)});
    rows_ = right_rows_ = 0;
    return scores;
  }

  std::vector<double*> totals() override {
    std::vector<double*> all{&rows_, &right_rows_};
    for (auto* counts : {&right_, &predicted_, &wanted_})
      for (double& count : *counts) all.push_back(&count);
    return all;
  }

 private:
  bool several_;
  double rows_ = 0, right_rows_ = 0;
  std::vector<double> right_, predicted_, wanted_;
};

/// Numbers, one for each text.
class NumberMetric final : public Metric {
 public:
  void add(const ModelInputs& inputs, const ModelOutput& output) override {
    const at::Tensor x = output.logits.flatten().to(at::kCPU, at::kDouble);
    const at::Tensor y = inputs.labels.flatten().to(at::kCPU, at::kDouble);
    const at::Tensor sums = at::stack({at::ones_like(x), x, y, x * x, y * y, x * y, (x - y).abs()}).sum(1);
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += sums.const_data_ptr<double>()[i];
  }

  std::vector<Score> take(double) override {
    const auto [count, x, y, xx, yy, xy, error] = std::exchange(sums_, {});
    const double spread = std::sqrt((count * xx - x * x) * (count * yy - y * y));
    return {{"pearson", ratio(count * xy - x * y, spread)}, {"mean_absolute_error", ratio(error, count)}};
  }

  std::vector<double*> totals() override {
    std::vector<double*> all;
    for (double& sum : sums_) all.push_back(&sum);
    return all;
  }

 private:
  std::array<double, 7> sums_{};  // of 1, prediction x, label y, x², y², x y and |x - y|
};

/// Word labels and the entities that they form.
class EntityMetric final : public Metric {
 public:
  explicit EntityMetric(std::vector<std::string> names) : names_(std::move(names)) {}

  void add(const ModelInputs& inputs, const ModelOutput& output) override {
    const at::Tensor guesses = output.logits.argmax(-1).cpu().contiguous(),
                     labels = inputs.labels.cpu().contiguous();
    for (std::int64_t row = 0; row < labels.size(0); ++row) {
      std::vector<std::int64_t> wanted, found;
      for (std::int64_t t = 0; t < labels.size(1); ++t) {
        const std::int64_t at = row * labels.size(1) + t, label = labels.const_data_ptr<std::int64_t>()[at];
        if (label < 0) continue;  // only the first token of a word has a label
        wanted.push_back(label);
        found.push_back(guesses.const_data_ptr<std::int64_t>()[at]);
        ++tokens_;
        if (wanted.back() == found.back()) ++right_tokens_;
      }
      count(entities_of(wanted, names_), entities_of(found, names_));
    }
  }

  std::vector<Score> take(double) override {
    const std::vector<Score> scores{{"accuracy", ratio(right_tokens_, tokens_)},
                                    {"f1", harmonic_mean(right_, found_, wanted_)}};
    tokens_ = right_tokens_ = right_ = found_ = wanted_ = 0;
    return scores;
  }

  std::vector<double*> totals() override { return {&tokens_, &right_tokens_, &right_, &found_, &wanted_}; }

 private:
  void count(const std::vector<Entity>& wanted, const std::vector<Entity>& found) {
    wanted_ += static_cast<double>(wanted.size());
    found_ += static_cast<double>(found.size());
    for (const Entity& entity : found)
      right_ += std::find(wanted.begin(), wanted.end(), entity) != wanted.end();
  }

  std::vector<std::string> names_;
  double tokens_ = 0, right_tokens_ = 0, right_ = 0, found_ = 0, wanted_ = 0;
};

/// Answers as token ranges.
class AnswerMetric final : public Metric {
 public:
  void add(const ModelInputs& inputs, const ModelOutput& output) override {
    const at::Tensor begins = output.start_logits.argmax(-1).cpu(), ends = output.end_logits.argmax(-1).cpu();
    const at::Tensor labels = inputs.labels.cpu();
    for (std::int64_t row = 0; row < labels.size(0); ++row) {
      const auto begin = begins[row].item<std::int64_t>(), end = ends[row].item<std::int64_t>();
      const auto first = labels[row][0].item<std::int64_t>(), last = labels[row][1].item<std::int64_t>();
      const std::int64_t common = std::min(end, last) - std::max(begin, first) + 1;
      const bool right = begin == first && end == last;
      ++rows_;
      right_ += right;
      // Without an answer, whose place is the first token's, there are no tokens to share.
      f1_ += last == 0 ? right
                       : harmonic_mean(static_cast<double>(std::max<std::int64_t>(common, 0)),
                                       static_cast<double>(std::max<std::int64_t>(end - begin + 1, 0)),
                                       static_cast<double>(last - first + 1));
    }
  }

  std::vector<Score> take(double) override {
    const std::vector<Score> scores{{"exact_match", ratio(right_, rows_)}, {"f1", ratio(f1_, rows_)}};
    rows_ = right_ = f1_ = 0;
    return scores;
  }

  std::vector<double*> totals() override { return {&rows_, &right_, &f1_}; }

 private:
  double rows_ = 0, right_ = 0, f1_ = 0;
};

constexpr std::size_t kLongest = 4;  // of the n-grams of bleu()

using Counts = std::map<std::vector<std::string>, std::int64_t>;

Counts grams_of(const std::vector<std::string>& words, std::size_t length) {
  Counts counts;
  for (std::size_t i = 0; i + length <= words.size(); ++i)
    ++counts[{words.begin() + static_cast<std::ptrdiff_t>(i),
              words.begin() + static_cast<std::ptrdiff_t>(i + length)}];
  return counts;
}

}  // namespace

std::unique_ptr<Metric> make_metric(Task task, const std::vector<std::string>& label_names,
                                    double bytes_per_token, ProblemType problem) {
  switch (task) {
    case Task::kClassification:
      if (problem == ProblemType::kRegression) return std::make_unique<NumberMetric>();
      return std::make_unique<ClassMetric>(label_names.size(), problem == ProblemType::kMultiLabel);
    case Task::kTokenClassification: return std::make_unique<EntityMetric>(label_names);
    case Task::kQuestionAnswering: return std::make_unique<AnswerMetric>();
    default:
      return std::make_unique<TokenMetric>(/*counts_tokens=*/task != Task::kLm && task != Task::kChat,
                                           /*counts_rows=*/task == Task::kSeq2Seq, bytes_per_token);
  }
}

std::vector<Entity> entities_of(const std::vector<std::int64_t>& labels,
                                const std::vector<std::string>& names) {
  std::vector<Entity> entities;
  std::string before;
  bool ended = false;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::string label = labels[i] < 0 ? "O" : names.at(static_cast<std::size_t>(labels[i]));
    const char tag = label.size() > 1 && label[1] == '-' ? label[0] : ' ';
    const bool tagged = std::string_view("BIES").find(tag) != std::string_view::npos;
    const std::string kind = label == "O" ? "" : tagged ? label.substr(2) : label;
    const auto at = static_cast<std::int64_t>(i);
    if (!kind.empty() && kind == before && !ended && tag != 'B' && tag != 'S') {
      entities.back().end = at + 1;
    } else if (!kind.empty()) {
      entities.push_back({kind, at, at + 1});
    }
    before = kind;
    ended = tag == 'E' || tag == 'S';
  }
  return entities;
}

double bleu(const std::vector<std::string>& written, const std::vector<std::string>& wanted) {
  double right[kLongest] = {}, all[kLongest] = {}, written_words = 0, wanted_words = 0;
  for (std::size_t i = 0; i < written.size(); ++i) {
    const std::vector<std::string> mine = split_words(written[i]), reference = split_words(wanted[i]);
    written_words += static_cast<double>(mine.size());
    wanted_words += static_cast<double>(reference.size());
    for (std::size_t n = 0; n < kLongest; ++n) {
      const Counts known = grams_of(reference, n + 1);
      for (const auto& [gram, count] : grams_of(mine, n + 1)) {
        const auto found = known.find(gram);
        all[n] += static_cast<double>(count);
        if (found != known.end()) right[n] += static_cast<double>(std::min(count, found->second));
      }
    }
  }
  double logarithm = 0;
  for (std::size_t n = 0; n < kLongest; ++n) {
    if (right[n] == 0) return 0;
    logarithm += std::log(right[n] / all[n]) / kLongest;
  }
  return std::exp(logarithm + std::min(0.0, 1 - wanted_words / written_words));
}

}  // namespace zoo
