#include "apps/verbs/train/ranking_objective.h"

#include <algorithm>
#include <iostream>
#include <map>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "apps/training/metrics/ranking_metrics.h"
#include "apps/training/ranking_losses.h"
#include "apps/verbs/train/train_data.h"
#include "data/base/error.h"
#include "data/base/json_file.h"
#include "data/base/lines.h"
#include "data/tokens/epoch_sampler.h"
#include "models/layers/recompute.h"
#include "models/tasks/encoding_batch.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

RankingLoss ranking_loss_of(const TrainFlags& flags) {
  if (!flags.embedding.loss) return RankingLoss::kBinaryCrossEntropy;
  const auto& names = ranking_loss_names();
  const auto found = std::ranges::find(names, *flags.embedding.loss);
  if (found == names.end())
    throw UsageError("--loss ", *flags.embedding.loss, ": of the task embedding; ranking has ",
                     joined(names));
  return static_cast<RankingLoss>(found - names.begin());
}

void require_rankings(const TaskData& data, RankingLoss loss) {
  for (const auto* part : {&data.rankings.train, &data.rankings.val}) {
    for (const RankingExample& example : *part) {
      const auto refuse = [&](auto... why) {
        throw Error(data.source, ", line ", example.line, ": the loss ",
                    ranking_loss_names()[static_cast<std::size_t>(loss)], " needs ", why...);
      };
      if (loss == RankingLoss::kListwiseSoftmax && (!example.is_list || example.documents.size() < 2))
        refuse("a query with its positive and at least one of negatives");
      if (loss == RankingLoss::kBinaryCrossEntropy && (example.labels[0] < 0 || example.labels[0] > 1))
        refuse("labels from 0 to 1; found ", example.labels[0], ". Other scores are for --loss mse");
    }
  }
}

class RankingObjective final : public Objective {
 public:
  RankingObjective(const TrainFlags& flags, const LoadedModel& loaded, const TaskData& data,
                   const BatchPlan& plan)
      : model_(loaded.model),
        tokenizer_(data.tokenizer),
        loss_(ranking_loss_of(flags)),
        plan_(plan),
        seed_(static_cast<std::uint64_t>(flags.compute.seed)),
        train_(encoded(data.rankings.train, flags)),
        val_(encoded(data.rankings.val, flags)),
        sampler_(lengths(train_), plan.rows_per_update(), {seed_, kTrainingStream}),
        train_evaluation_(
            evaluation_order(lengths(train_), plan.batch_size, {seed_, kTrainEvaluationStream})),
        val_evaluation_(evaluation_order(lengths(val_), plan.batch_size, {seed_, kValEvaluationStream})) {
    if (cut_ > 0) std::cerr << "note: " << cut_ << " pairs are cut to " << limit(flags) << " tokens\n";
  }

  torch::nn::Module& module() override { return *model_; }

  Batch training(std::int64_t micro_step) override {
    const std::vector<std::int64_t> all = sampler_.batch(plan_.update_of(micro_step));
    return batch(train_,
                 std::span(all).subspan(static_cast<std::size_t>(plan_.first_row(micro_step)),
                                        static_cast<std::size_t>(plan_.batch_size)),
                 /*measured=*/false);
  }

  Batch evaluation(Split split, std::int64_t index) override {
    const bool train = split == Split::kTrain;
    const auto& batches = train ? train_evaluation_ : val_evaluation_;
    return batch(train ? train_ : val_, batches.at(static_cast<std::size_t>(index)), /*measured=*/!train);
  }

  std::int64_t evaluation_batches(Split split) const override {
    return static_cast<std::int64_t>((split == Split::kTrain ? train_evaluation_ : val_evaluation_).size());
  }

  std::vector<Score> take_scores(double) override {
    std::vector<double> labels, logits;
    RankingFigures sum;
    double queries = 0;
    for (auto& [query, documents] : measured_) {
      // Best first; of equal logits the less relevant first, so that a model that tells nothing apart gains
      // nothing.
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
      if (least == most) continue;
      const RankingFigures figures = ranking_figures(gains);
      sum.accuracy += figures.accuracy;
      sum.mrr += figures.mrr;
      sum.ndcg += figures.ndcg;
      ++queries;
    }
    measured_.clear();
    if (labels.empty()) return {};
    if (queries == 0) return {{"spearman", spearman(logits, labels)}};
    return {{"accuracy", sum.accuracy / queries},
            {"mrr_at_10", sum.mrr / queries},
            {"ndcg_at_10", sum.ndcg / queries}};
  }

 private:
  struct Row {
    std::string query;
    std::vector<Encoding> pairs;
    std::vector<double> labels;
  };

  std::size_t limit(const TrainFlags& flags) const {
    const auto block = static_cast<std::size_t>(flags.data.block_size);
    return std::min(block, tokenizer_->limits().max_length.value_or(block));
  }

  std::vector<Row> encoded(const std::vector<RankingExample>& examples, const TrainFlags& flags) {
    std::vector<Row> rows;
    for (const RankingExample& example : examples) {
      Row& row = rows.emplace_back(Row{.query = example.query, .labels = example.labels});
      for (const std::string& document : example.documents) {
        const auto encode = [&](std::optional<std::size_t> most) {
          return tokenizer_->encode_pair(example.query, document,
                                         {.max_length = most, .with_offsets = false});
        };
        Encoding pair = encode(std::nullopt);
        if (pair.size() > limit(flags)) {
          ++cut_;
          pair = encode(limit(flags));
        }
        row.pairs.push_back(std::move(pair));
      }
    }
    return rows;
  }

  static std::vector<std::int64_t> lengths(const std::vector<Row>& rows) {
    std::vector<std::int64_t> lengths;
    for (const Row& row : rows) {
      lengths.push_back(0);
      for (const Encoding& pair : row.pairs) lengths.back() += static_cast<std::int64_t>(pair.size());
    }
    return lengths;
  }

  Batch batch(const std::vector<Row>& rows, std::span<const std::int64_t> numbers, bool measured) {
    Batch batch{.targets = 0};
    std::vector<const Row*> picked;
    for (const std::int64_t number : numbers) {
      picked.push_back(&rows[static_cast<std::size_t>(number)]);
      const bool by_query = loss_ == RankingLoss::kListwiseSoftmax;
      batch.targets += by_query ? 1 : static_cast<double>(picked.back()->pairs.size());
      for (const Encoding& pair : picked.back()->pairs)
        batch.tokens += static_cast<std::int64_t>(pair.size());
    }
    batch.loss = [this, picked = std::move(picked), measured] { return loss_of_rows(picked, measured); };
    return batch;
  }

  at::Tensor loss_of_rows(const std::vector<const Row*>& rows, bool measured) {
    std::vector<const Encoding*> pairs;
    std::vector<double> labels;
    std::vector<std::int64_t> lists;
    for (const Row* row : rows) {
      for (const Encoding& pair : row->pairs) pairs.push_back(&pair);
      labels.insert(labels.end(), row->labels.begin(), row->labels.end());
      lists.push_back(static_cast<std::int64_t>(row->pairs.size()));
    }
    const c10::Device device = model_->parameters().front().device();
    const at::Tensor logits =
        model_->forward(batch_of(*model_, *tokenizer_, device, pairs)).logits.squeeze(1).to(at::kFloat);
    if (measured) measure(rows, logits.detach().to(at::kCPU, at::kDouble).contiguous());
    return ranking_loss(loss_, logits, at::tensor(labels, at::kFloat).to(device), lists);
  }

  void measure(const std::vector<const Row*>& rows, const at::Tensor& logits) {
    const double* logit = logits.const_data_ptr<double>();
    for (const Row* row : rows) {
      for (const double label : row->labels) measured_[row->query].emplace_back(*logit++, label);
    }
  }

  std::shared_ptr<Model> model_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  RankingLoss loss_;
  BatchPlan plan_;
  std::uint64_t seed_;
  std::int64_t cut_ = 0;
  std::vector<Row> train_, val_;
  EpochSampler sampler_;
  std::vector<std::vector<std::int64_t>> train_evaluation_, val_evaluation_;
  std::map<std::string, std::vector<std::pair<double, double>>> measured_;  // logits and labels by query
};

}  // namespace

std::unique_ptr<Objective> ranking_objective(const TrainFlags& flags, const LoadedModel& loaded,
                                             const TaskData& data, const BatchPlan& plan) {
  if (flags.disagreement != Disagreement::kNone || flags.data.label_smoothing > 0)
    throw UsageError(flags.data.label_smoothing > 0 ? "--label_smoothing" : "--disagreement",
                     ": not for the task ranking");
  const TransformerConfig& config = loaded.model->config();
  if (config.shape == Shape::kEncoderDecoder)
    throw Error("--task ranking: expected an encoder or a decoder, not an encoder-decoder");
  if (config.shape == Shape::kDecoder &&
      (config.pad_token_id < 0 || config.pad_token_id >= config.vocab_size))
    throw Error(
        "--task ranking: a decoder finds the end of a pair by its pad_token_id, which config.json lacks");
  if (config.problem_type == ProblemType::kSingleLabel || config.problem_type == ProblemType::kMultiLabel)
    throw Error("--task ranking: the model's problem_type is not regression; take it out of config.json");
  require_rankings(data, ranking_loss_of(flags));
  recompute_blocks(*loaded.model, flags.activation_checkpointing);
  return std::make_unique<RankingObjective>(flags, loaded, data, plan);
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
