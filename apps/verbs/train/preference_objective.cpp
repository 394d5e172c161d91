#include <algorithm>
#include <array>

#include <ATen/ATen.h>

#include "apps/command/progress.h"
#include "apps/training/mixed_precision.h"
#include "apps/training/row_objective.h"
#include "apps/verbs/train/text_objectives.h"
#include "models/tasks/encoding_batch.h"
#include "models/tasks/inference_loading.h"

namespace zoo {
namespace {

// A prompt with its answer; labels as those of Example.
struct Answer {
  Encoding text;
  std::vector<std::int64_t> labels;
};

// Chosen and rejected answer; of kto an answer, and its prompt with the answer of another row.
struct AnswerRow : RowCounts {
  std::array<Answer, 2> answers;
  bool is_rejected = false;           // of kto
  std::array<double, 2> reference{};  // log-probabilities
};
using Answers = std::vector<const Answer*>;

struct LogProbs {
  at::Tensor sums, counts;  // [N] of the answers' tokens, and their number
  at::Tensor tokens, rows;  // [M] of each token that was asked for, and which answer it is of
};

// `whole`: also the tokens of the prompts.
LogProbs log_probs(Model& model, const Tokenizer& tokenizer, const Answers& answers, bool whole) {
  std::vector<const Encoding*> texts;
  for (const Answer* answer : answers) texts.push_back(&answer->text);
  const c10::Device device = model.parameters().front().device();
  ModelInputs inputs = batch_of(model, tokenizer, device, texts);
  const std::int64_t width = inputs.input_ids.size(1);
  std::vector<std::int64_t> positions, ids, rows;
  std::vector<double> in_answer;
  for (std::size_t row = 0; row < answers.size(); ++row) {
    for (std::size_t t = 1; t < answers[row]->labels.size(); ++t) {
      const bool learnt = answers[row]->labels[t] >= 0;
      if (!learnt && !whole) continue;
      positions.push_back(static_cast<std::int64_t>(row) * width + static_cast<std::int64_t>(t) - 1);
      ids.push_back(texts[row]->ids[t]);
      rows.push_back(static_cast<std::int64_t>(row));
      in_answer.push_back(learnt ? 1 : 0);
    }
  }
  const auto sent = [&](const std::vector<std::int64_t>& x) { return at::tensor(x, at::kLong).to(device); };
  const at::Tensor targets = sent(ids), counted = at::tensor(in_answer, at::kDouble).to(device);
  inputs.label_positions = sent(positions);
  inputs.targets = at::full_like(inputs.input_ids, -100);
  inputs.targets.view(-1).index_copy_(0, inputs.label_positions, targets);
  const at::Tensor logits = model.forward(inputs).logits.to(at::kFloat);  // [M, V]
  const at::Tensor asked = at::log_softmax(logits, -1).gather(1, targets.unsqueeze(1)).squeeze(1);
  LogProbs found{.tokens = asked.to(at::kDouble), .rows = sent(rows)};
  const at::Tensor none = at::zeros({std::ssize(answers)}, counted.options());
  found.sums = none.index_add(0, found.rows, found.tokens * counted);
  found.counts = none.index_add(0, found.rows, counted);
  return found;
}

class PreferenceObjective final : public RowObjective<AnswerRow> {
 public:
  PreferenceObjective(std::shared_ptr<Model> model, std::shared_ptr<const Tokenizer> tokenizer,
                      const PreferenceLossOptions& options, Splits<AnswerRow> rows,
                      const ExampleOrder::Options& order)
      : RowObjective(std::move(model), std::move(rows), order),
        tokenizer_(std::move(tokenizer)),
        options_(options) {}

  std::vector<Score> take_training_scores() override { return take_scores(0); }
  std::vector<Score> take_scores(double) override {
    const auto [chosen, rejected, kl] = std::exchange(figures_, {});
    if (chosen.empty()) return {};
    const at::Tensor good = at::cat(chosen), bad = at::cat(rejected);
    std::vector<Score> scores;
    const auto add = [&](const char* name, const at::Tensor& x) {
      if (x.numel() > 0) scores.push_back({name, x.mean().item<double>()});
    };
    add("rewards_chosen", good);
    add("rewards_rejected", bad);
    if (kl.empty()) add("rewards_accuracies", good.gt(bad).to(at::kDouble));
    if (good.numel() > 0 && bad.numel() > 0) add("rewards_margins", good.mean() - bad.mean());
    if (!kl.empty()) add("kl", at::stack(kl));
    return scores;
  }

 private:
  bool is(PreferenceLoss loss) const { return options_.loss == loss; }

  // The answers and their log-probabilities by the reference, of one side of the rows or of both.
  std::pair<Answers, at::Tensor> texts_of(const Rows& rows, std::size_t begin, std::size_t end) const {
    Answers answers;
    std::vector<double> reference;
    for (std::size_t side = begin; side < end; ++side) {
      for (const AnswerRow* row : rows) {
        answers.push_back(&row->answers[side]);
        reference.push_back(row->reference[side]);
      }
    }
    return {answers, at::tensor(reference, at::kDouble).to(model_->parameters().front().device())};
  }

  at::Tensor loss(const Rows& rows, bool) override {
    model_->eval();  // without dropout, as TRL: neither has the reference
    const auto [answers, reference] = texts_of(rows, 0, is(PreferenceLoss::kKto) ? 1 : 2);
    const LogProbs found = log_probs(*model_, *tokenizer_, answers, is(PreferenceLoss::kOrpo));
    at::Tensor ratios = found.sums - reference, kl;
    if (is(PreferenceLoss::kIpo) || is(PreferenceLoss::kOrpo)) ratios = ratios / found.counts;
    const auto count = std::ssize(rows);
    at::Tensor chosen = ratios.slice(0, 0, count), rejected = ratios.slice(0, count);
    if (is(PreferenceLoss::kKto)) {
      kl = divergence(rows, sharing());
      std::vector<std::int64_t> good, bad;
      for (std::int64_t i = 0; i < count; ++i)
        (rows[static_cast<std::size_t>(i)]->is_rejected ? bad : good).push_back(i);
      chosen = ratios.index_select(0, at::tensor(good, at::kLong).to(ratios.device()));
      rejected = ratios.index_select(0, at::tensor(bad, at::kLong).to(ratios.device()));
      figures_.kl.push_back(kl);
    }
    figures_.chosen.push_back(options_.beta * chosen.detach());
    figures_.rejected.push_back(options_.beta * rejected.detach());
    at::Tensor loss = preference_loss(options_, chosen, rejected, kl);
    if (is(PreferenceLoss::kOrpo)) {
      const at::Tensor tokens = found.tokens.masked_select(found.rows.lt(count));
      auto mean_count = static_cast<double>(tokens.numel());
      if (Ranks* ranks = sharing()) mean_count = ranks->sum(mean_count) / static_cast<double>(ranks->size());
      loss = loss - tokens.sum() / mean_count;
    }
    return loss.to(at::kFloat);
  }

  at::Tensor divergence(const Rows& rows, Ranks* ranks) const {
    const at::NoGradGuard no_grad;
    const auto [answers, reference] = texts_of(rows, 1, 2);
    const LogProbs found = log_probs(*model_, *tokenizer_, answers, /*whole=*/false);
    const at::Tensor mean = (found.sums - reference).mean();
    if (ranks != nullptr) ranks->average({mean});
    return mean.clamp_min(0);
  }

  struct Figures {
    std::vector<at::Tensor> chosen, rejected, kl;  // rewards of the batches; of kto
  };

  std::shared_ptr<const Tokenizer> tokenizer_;
  PreferenceLossOptions options_;
  Figures figures_;
};

Answer answer_of(const Example& example) { return {{.ids = example.input_ids}, example.labels}; }

// The prompt of one example with the answer of another.
Answer answer_of(const Example& prompt, const Example& answer, std::size_t limit) {
  const auto begin = [](const Example& example) {
    return std::ranges::find_if(example.labels, [](std::int64_t label) { return label >= 0; }) -
           example.labels.begin();
  };
  Answer made;
  made.text.ids.assign(prompt.input_ids.begin(), prompt.input_ids.begin() + begin(prompt));
  made.labels.assign(made.text.ids.size(), -100);
  made.text.ids.insert(made.text.ids.end(), answer.input_ids.begin() + begin(answer), answer.input_ids.end());
  made.labels.insert(made.labels.end(), answer.labels.begin() + begin(answer), answer.labels.end());
  made.text.ids.resize(std::min(limit, made.text.ids.size()));
  made.labels.resize(made.text.ids.size());
  return made;
}

std::vector<AnswerRow> rows_of(const std::vector<Example>& examples, bool has_pairs, bool kto,
                               std::size_t limit) {
  std::vector<AnswerRow> rows;
  std::vector<const Example*> order;  // of pairs the chosen first, so that answers of one prompt are apart
  for (std::size_t i = 0; i < examples.size(); ++i) order.push_back(&examples[i]);
  if (kto && has_pairs)
    std::stable_partition(order.begin(), order.end(), [](const auto* e) { return !e->is_rejected; });
  for (std::size_t i = 0; i < order.size(); i += kto ? 1 : 2) {
    AnswerRow& row = rows.emplace_back();
    row.answers = {answer_of(*order[i]),
                   kto ? answer_of(*order[i], *order[(i == 0 ? order.size() : i) - 1], limit)
                       : answer_of(*order[i + 1])};
    row.is_rejected = order[i]->is_rejected;
    for (const Answer& answer : row.answers) row.tokens += std::ssize(answer.labels);
  }
  return rows;
}

// [rows, 2]
at::Tensor reference_of(Model& model, const Tokenizer& tokenizer, const std::vector<AnswerRow>& rows,
                        std::int64_t batch_size) {
  const at::NoGradGuard no_grad;
  model.eval();
  std::vector<std::int64_t> lengths;
  for (const AnswerRow& row : rows) lengths.push_back(row.tokens);
  at::Tensor all = at::zeros({std::ssize(rows), 2}, at::kDouble);
  Progress progress(std::ssize(rows), "rows by the reference model");
  std::int64_t done = 0;
  for (const std::vector<std::int64_t>& batch : batches_by_length(lengths, batch_size)) {
    Answers answers;
    for (const std::int64_t i : batch)
      for (const Answer& answer : rows[static_cast<std::size_t>(i)].answers) answers.push_back(&answer);
    all.index_copy_(0, at::tensor(batch, at::kLong),
                    log_probs(model, tokenizer, answers, /*whole=*/false).sums.cpu().view({-1, 2}));
    progress.update(done += std::ssize(batch));
  }
  return all;
}

}  // namespace

std::unique_ptr<Objective> preference_objective(const TrainFlags& flags, const LoadedModel& loaded,
                                                const TaskData& data, const BatchPlan& plan,
                                                const std::filesystem::path& kept, NamedTensors& reference) {
  const bool kto = flags.preference.loss == PreferenceLoss::kKto;
  if (!kto && !data.has_pairs)
    throw Error(data.source,
                " has single answers with a label, which only --preference_loss kto learns from");
  if (loaded.model->config().router_loss)
    throw Error("--task preference does not balance experts; take output_router_logits out of config.json");
  const auto limit = static_cast<std::size_t>(flags.data.block_size);
  Splits<AnswerRow> rows{rows_of(data.examples.train, data.has_pairs, kto, limit),
                         rows_of(data.examples.val, data.has_pairs, kto, limit)};
  Model& model = *loaded.model;
  const bool has_reference = flags.preference.loss != PreferenceLoss::kOrpo;
  if (has_reference && !kept.empty()) {
    const SafetensorsFile file(kept);
    file.verify();
    for (const std::string& name : file.names()) reference.emplace_back(name, file.tensor(name).clone());
  }
  for (auto& [name, part] : {std::pair<const char*, std::vector<AnswerRow>&>{"train", rows.train},
                             std::pair<const char*, std::vector<AnswerRow>&>{"val", rows.val}}) {
    if (!has_reference) continue;
    if (kept.empty()) {
      const AutocastScope autocast(dtype_of(flags.compute), model.parameters().front().device());
      reference.emplace_back(name, reference_of(model, *data.tokenizer, part, plan.batch_size));
    }
    const auto found = std::ranges::find(reference, name, &NamedTensors::value_type::first);
    const auto count = std::ssize(part);
    if (found == reference.end() || found->second.sizes() != at::IntArrayRef({count, 2}) ||
        found->second.scalar_type() != at::kDouble)
      throw Error(kReferenceFile, ": expected '", name, "' of ", count, " rows, as the run's data have");
    const double* values = found->second.const_data_ptr<double>();
    for (AnswerRow& row : part) row.reference = {*values++, *values++};
  }
  PreferenceLossOptions options = flags.preference;
  options.label_smoothing = flags.data.label_smoothing;
  return std::make_unique<PreferenceObjective>(
      loaded.model, data.tokenizer, options, std::move(rows),
      ExampleOrder::Options{plan, static_cast<std::uint64_t>(flags.compute.seed)});
}

}  // namespace zoo
