#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "apps/training/metrics/ranking_metrics.h"
#include "apps/training/retrieval_losses.h"
#include "apps/training/row_objective.h"
#include "apps/verbs/train/text_objectives.h"
#include "data/base/json.h"
#include "models/tasks/encoding_batch.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

RankingLoss ranking_loss_of(const TrainFlags& flags) {
  return flags.embedding.loss ? static_cast<RankingLoss>(number_of(*flags.embedding.loss, kRankingLossNames))
                              : RankingLoss::kBinaryCrossEntropy;
}

void require_fit(const SentenceExample& example, RankingLoss loss) {
  const std::string needs = "the loss " + kRankingLossNames[static_cast<std::size_t>(loss)] + " needs ";
  if (loss == RankingLoss::kListwiseSoftmax && (example.score || example.texts.size() < 3))
    throw Error(needs, "a query with its positive and at least one of negatives");
  if (loss == RankingLoss::kBinaryCrossEntropy && example.score && (*example.score < 0 || *example.score > 1))
    throw Error(needs, "labels from 0 to 1; found ", *example.score, ". Other scores are for --loss mse");
}

struct RankingRow : RowCounts {
  std::string query;
  std::vector<Encoding> pairs;
  std::vector<double> labels;
};

class RankingObjective final : public RowObjective<RankingRow> {
 public:
  RankingObjective(const LoadedModel& loaded, std::shared_ptr<const Tokenizer> tokenizer, RankingLoss loss,
                   Splits<RankingRow> rows, const ExampleOrder::Options& options)
      : RowObjective(loaded.model, std::move(rows), options), tokenizer_(std::move(tokenizer)), loss_(loss) {}

  std::vector<Score> take_scores(double) override {
    std::vector<double> labels, logits;
    std::vector<std::vector<double>> queries;
    for (auto& [query, documents] : measured_) {
      // Best first; of equal logits the less relevant: a model that tells nothing apart gains nothing.
      std::ranges::sort(documents, [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first > b.first : a.second < b.second;
      });
      std::vector<double> gains;
      for (const auto& [logit, label] : documents) {
        logits.push_back(logit);
        labels.push_back(label);
        gains.push_back(std::max(0.0, label));
      }
      const auto [least, most] = std::ranges::minmax(gains);
      if (least != most) queries.push_back(std::move(gains));
    }
    measured_.clear();
    if (labels.empty()) return {};
    if (queries.empty()) return {{"spearman", spearman(logits, labels)}};
    return mean_figures(queries);
  }

 private:
  at::Tensor loss(const Rows& rows, bool measured) override {
    std::vector<const Encoding*> pairs;
    std::vector<double> labels;
    std::vector<std::int64_t> lists;
    for (const RankingRow* row : rows) {
      for (const Encoding& pair : row->pairs) pairs.push_back(&pair);
      labels.insert(labels.end(), row->labels.begin(), row->labels.end());
      lists.push_back(std::ssize(row->pairs));
    }
    const c10::Device device = model_->parameters().front().device();
    const at::Tensor logits =
        model_->forward(batch_of(*model_, *tokenizer_, device, pairs)).logits.squeeze(1).to(at::kFloat);
    if (measured) {
      const at::Tensor known = logits.detach().to(at::kCPU, at::kDouble).contiguous();
      if (!known.isfinite().all().item<bool>())
        throw Error("the logit of a pair is not finite: nothing can be ranked by it");
      const double* logit = known.const_data_ptr<double>();
      for (const RankingRow* row : rows)
        for (const double label : row->labels) measured_[row->query].emplace_back(*logit++, label);
    }
    return ranking_loss(loss_, logits, at::tensor(labels, at::kFloat).to(device), lists);
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
  RankingLoss loss_;
  std::map<std::string, std::vector<std::pair<double, double>>> measured_;  // logits and labels by query
};

RankingRow encoded(const SentenceExample& example, const Tokenizer& tokenizer, EncodeLimits& limits) {
  RankingRow row;
  row.query = example.texts[0];
  for (std::size_t i = 1; i < example.texts.size(); ++i) {
    row.pairs.push_back(
        encode_within(limits, tokenizer, row.query, example.texts[i], {.with_offsets = false}));
    row.labels.push_back(example.score.value_or(i == 1 ? 1 : 0));
    row.tokens += static_cast<std::int64_t>(row.pairs.back().size());
  }
  return row;
}

// Rows of one query become a list of its documents; a query whose labels are all the same says nothing.
std::vector<RankingRow> joined_by_query(std::vector<RankingRow> rows, const std::string& source) {
  std::vector<RankingRow> lists;
  std::map<std::string, std::size_t> places;
  for (RankingRow& row : rows) {
    const auto [place, is_new] = places.emplace(row.query, lists.size());
    if (is_new) {
      lists.push_back(std::move(row));
      continue;
    }
    RankingRow& list = lists[place->second];
    std::ranges::move(row.pairs, std::back_inserter(list.pairs));
    std::ranges::move(row.labels, std::back_inserter(list.labels));
    list.tokens += row.tokens;
  }
  for (RankingRow& list : lists) {
    list.targets = 0;
    for (const double better : list.labels)
      list.targets += static_cast<double>(
          std::ranges::count_if(list.labels, [&](double label) { return label < better; }));
  }
  std::erase_if(lists, [](const RankingRow& list) { return list.targets == 0; });
  if (lists.empty())
    throw Error(source, ": the loss lambda needs a query with documents of different labels");
  return lists;
}

}  // namespace

std::unique_ptr<Objective> ranking_objective(const TrainFlags& flags, const LoadedModel& loaded,
                                             const TaskData& data, const BatchPlan& plan) {
  const TransformerConfig& config = loaded.model->config();
  if (config.shape == Shape::kEncoderDecoder)
    throw Error("--task ranking: expected an encoder or a decoder, not an encoder-decoder");
  if (config.shape == Shape::kDecoder &&
      (config.pad_token_id < 0 || config.pad_token_id >= config.vocab_size))
    throw Error(
        "--task ranking: a decoder finds the end of a pair by its pad_token_id, which config.json lacks");
  if (config.problem_type == ProblemType::kSingleLabel || config.problem_type == ProblemType::kMultiLabel)
    throw Error("--task ranking: the model's problem_type is not regression; take it out of config.json");
  const RankingLoss loss = ranking_loss_of(flags);
  const auto block = static_cast<std::size_t>(flags.data.block_size);
  EncodeLimits limits{.max_length = std::min(block, data.tokenizer->limits().max_length.value_or(block))};
  Splits<RankingRow> rows = rows_of_examples(data, [&](const SentenceExample& example) {
    require_fit(example, loss);
    RankingRow row = encoded(example, *data.tokenizer, limits);
    if (!takes_lists(loss)) row.targets = static_cast<double>(row.pairs.size());
    return row;
  });
  if (loss == RankingLoss::kLambda) {
    rows.train = joined_by_query(std::move(rows.train), data.source);
    rows.val = joined_by_query(std::move(rows.val), data.val_source);
  }
  if (limits.cut > 0)
    std::cerr << "note: " << limits.cut << " pairs are cut to " << limits.max_length << " tokens\n";
  return std::make_unique<RankingObjective>(
      loaded, data.tokenizer, loss, std::move(rows),
      ExampleOrder::Options{plan, static_cast<std::uint64_t>(flags.compute.seed)});
}

void name_activation(const TrainFlags& flags, const fs::path& directory) {
  json config = read_json(directory / "config.json");
  const fs::path settings = directory / "config_sentence_transformers.json";
  const auto names = [](const json& section) {
    return section.is_object() && section.contains("activation_fn");
  };
  if (config.contains("sbert_ce_default_activation_function") ||
      names(config.value("sentence_transformers", json())) ||
      (fs::exists(settings) && names(read_json(settings))))
    return;
  const bool identity = ranking_loss_of(flags) == RankingLoss::kMse;
  config["sentence_transformers"]["activation_fn"] =
      identity ? "torch.nn.modules.linear.Identity" : "torch.nn.modules.activation.Sigmoid";
  write_json(directory / "config.json", config);
}

}  // namespace zoo
