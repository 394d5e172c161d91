#include "apps/verbs/train/embedding_objective.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "apps/training/metrics/ranking_metrics.h"
#include "data/base/error.h"
#include "models/layers/recompute.h"

namespace zoo {
namespace {

// Rows whose vectors are kept for the figures: each anchor is compared with all documents.
constexpr std::int64_t kMostMeasuredRows = 10'000;

// In random order, since an evaluation may use only the first few batches.
std::vector<std::vector<std::int64_t>> shuffled_batches(std::size_t rows, std::int64_t size,
                                                        SamplerSeed seed) {
  const std::vector<std::int64_t> order =
      RandomStream(seed.seed, {.stream = seed.stream}).permutation(static_cast<std::int64_t>(rows));
  std::vector<std::vector<std::int64_t>> batches;
  for (std::size_t begin = 0; begin < rows; begin += static_cast<std::size_t>(size)) {
    const std::size_t end = std::min(rows, begin + static_cast<std::size_t>(size));
    batches.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(begin),
                         order.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return batches;
}

template <class Row>
std::vector<const Row*> picked(const std::vector<Row>& rows, std::span<const std::int64_t> numbers) {
  std::vector<const Row*> found;
  for (const std::int64_t number : numbers) found.push_back(&rows[static_cast<std::size_t>(number)]);
  return found;
}

std::vector<double> doubles_of(const at::Tensor& x) {
  const at::Tensor values = x.to(at::kDouble).contiguous();
  return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
}

}  // namespace

EmbeddingObjective::EmbeddingObjective(std::shared_ptr<Model> model, Embedders embedders,
                                       const SentenceSplits& examples, const Options& options)
    : model_(std::move(model)),
      embedders_(std::move(embedders)),
      options_(options),
      train_(encoded(examples.train)),
      val_(encoded(examples.val)),
      // Not by length: negatives as long as the positive would be no fair sample of all documents.
      sampler_(std::vector<std::int64_t>(train_.size(), 1), options.plan.rows_per_update(),
               {options.seed, kTrainingStream}),
      train_evaluation_(
          shuffled_batches(train_.size(), options.plan.batch_size, {options.seed, kTrainEvaluationStream})),
      val_evaluation_(
          shuffled_batches(val_.size(), options.plan.batch_size, {options.seed, kValEvaluationStream})) {}

std::vector<EmbeddingObjective::Row> EmbeddingObjective::encoded(
    const std::vector<SentenceExample>& examples) {
  const auto encode = [&](const TextEmbedder& embedder, const SentenceExample& example, std::size_t text) {
    try {
      Encoding whole = std::move(embedder.encode({example.texts[text]}, /*truncates=*/false).front());
      if (whole.size() <= embedder.max_length().value_or(whole.size())) return whole;
      ++cut_;
      return std::move(embedder.encode({example.texts[text]}).front());
    } catch (const Error& error) {
      throw Error("line ", example.line, " of the data: ", error.what());
    }
  };
  std::vector<Row> rows;
  for (const SentenceExample& example : examples) {
    Row& row = rows.emplace_back(Row{.anchor = encode(embedders_.queries, example, 0)});
    for (std::size_t i = 1; i < example.texts.size(); ++i)
      row.documents.push_back(encode(embedders_.documents, example, i));
    row.score = example.score.value_or(0);
  }
  return rows;
}

std::int64_t EmbeddingObjective::width() const {
  const at::NoGradGuard no_grad;
  const Encoding* one = &val_.front().anchor;
  return embedders_.queries.vectors_of(std::span(&one, 1)).size(1);
}

at::Tensor EmbeddingObjective::vectors(const TextEmbedder& embedder,
                                       const std::vector<const Encoding*>& texts) const {
  const auto size = static_cast<std::size_t>(options_.mini_batch_size);
  if (size == 0 || !at::GradMode::is_enabled()) return embedder.vectors_of(texts);
  std::vector<at::Tensor> parts;
  for (std::size_t begin = 0; begin < texts.size(); begin += size) {
    const auto first = texts.begin() + static_cast<std::ptrdiff_t>(begin);
    const std::vector<const Encoding*> piece(
        first, first + static_cast<std::ptrdiff_t>(std::min(size, texts.size() - begin)));
    parts.push_back(recompute([&embedder, piece](const auto&) { return embedder.vectors_of(piece); }, {},
                              model_->parameters()));
  }
  return at::cat(parts);
}

EmbeddedBatch EmbeddingObjective::embed(const Rows& rows) const {
  std::vector<const Encoding*> anchors, documents;
  std::vector<double> scores;
  for (const Row* row : rows) {
    anchors.push_back(&row->anchor);
    documents.push_back(&row->documents.front());
    scores.push_back(row->score);
  }
  for (const Row* row : rows) {
    for (std::size_t i = 1; i < row->documents.size(); ++i) documents.push_back(&row->documents[i]);
  }
  EmbeddedBatch batch{.anchors = vectors(embedders_.queries, anchors),
                      .documents = vectors(embedders_.documents, documents)};
  if (takes_scores(options_.loss.loss))
    batch.scores = at::tensor(scores, at::kDouble).to(batch.anchors.device());
  return batch;
}

Batch EmbeddingObjective::batch(Rows rows, bool measured) {
  Batch batch{.targets = static_cast<double>(rows.size())};
  for (const Row* row : rows) {
    batch.tokens += static_cast<std::int64_t>(row->anchor.size());
    for (const Encoding& document : row->documents)
      batch.tokens += static_cast<std::int64_t>(document.size());
  }
  batch.loss = [this, rows = std::move(rows), measured] {
    const EmbeddedBatch embedded = embed(rows);
    if (measured) measure(embedded);
    return embedding_loss(options_.loss, embedded);
  };
  return batch;
}

Batch EmbeddingObjective::training(std::int64_t micro_step) {
  const BatchPlan& plan = options_.plan;
  const std::vector<std::int64_t> all = sampler_.batch(plan.update_of(micro_step));
  return batch(picked(train_, std::span(all).subspan(static_cast<std::size_t>(plan.first_row(micro_step)),
                                                     static_cast<std::size_t>(plan.batch_size))),
               /*measured=*/false);
}

Batch EmbeddingObjective::evaluation(Split split, std::int64_t index) {
  const bool train = split == Split::kTrain;
  const auto& order = train ? train_evaluation_ : val_evaluation_;
  return batch(picked(train ? train_ : val_, order.at(static_cast<std::size_t>(index))),
               /*measured=*/!train);
}

std::int64_t EmbeddingObjective::evaluation_batches(Split split) const {
  return static_cast<std::int64_t>((split == Split::kTrain ? train_evaluation_ : val_evaluation_).size());
}

void EmbeddingObjective::measure(const EmbeddedBatch& batch) {
  if (measured_rows_ >= kMostMeasuredRows) return;
  measured_rows_ += batch.anchors.size(0);
  const auto kept = [](const at::Tensor& x) { return x.defined() ? x.detach().cpu() : x; };
  measured_.push_back({kept(batch.anchors), kept(batch.documents), kept(batch.scores)});
}

std::vector<Score> EmbeddingObjective::ranking_scores() const {
  std::vector<at::Tensor> positives, negatives;
  for (const EmbeddedBatch& batch : measured_) {
    positives.push_back(unit_vectors(batch.documents.slice(0, 0, batch.anchors.size(0))));
    negatives.push_back(unit_vectors(batch.documents.slice(0, batch.anchors.size(0))));
  }
  const at::Tensor own = at::cat(positives), documents = at::cat({own, at::cat(negatives)}).t();
  RankingFigures sum;
  std::int64_t before = 0;
  for (const EmbeddedBatch& batch : measured_) {
    const at::Tensor scores = at::matmul(unit_vectors(batch.anchors), documents);
    const std::int64_t rows = batch.anchors.size(0);
    const at::Tensor right = at::arange(before, before + rows).unsqueeze(1);
    // The positive counts itself, so that this is its rank.
    const at::Tensor ranks = scores.ge(scores.gather(1, right)).sum(1);
    for (std::int64_t i = 0; i < rows; ++i) {
      std::vector<double> gains(static_cast<std::size_t>(ranks[i].item<std::int64_t>()));
      gains.back() = 1;
      const RankingFigures figures = ranking_figures(gains);
      sum.accuracy += figures.accuracy;
      sum.mrr += figures.mrr;
      sum.ndcg += figures.ndcg;
    }
    before += rows;
  }
  const auto rows = static_cast<double>(before);
  return {{"accuracy", sum.accuracy / rows}, {"mrr_at_10", sum.mrr / rows}, {"ndcg_at_10", sum.ndcg / rows}};
}

std::vector<Score> EmbeddingObjective::take_scores(double) {
  std::vector<Score> scores;
  if (!measured_.empty() && takes_scores(options_.loss.loss)) {
    std::vector<double> wanted, found;
    for (const EmbeddedBatch& batch : measured_) {
      const auto add = [](std::vector<double>& to, const at::Tensor& x) {
        const std::vector<double> numbers = doubles_of(x);
        to.insert(to.end(), numbers.begin(), numbers.end());
      };
      add(wanted, batch.scores);
      add(found, (unit_vectors(batch.anchors) * unit_vectors(batch.documents)).sum(-1));
    }
    scores.push_back({"spearman", spearman(wanted, found)});
  } else if (!measured_.empty()) {
    scores = ranking_scores();
  }
  measured_.clear();
  measured_rows_ = 0;
  return scores;
}

}  // namespace zoo
