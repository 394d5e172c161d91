#include "apps/verbs/train/embedding_objective.h"

#include <algorithm>
#include <iostream>

#include <ATen/ATen.h>

#include "apps/command/arguments.h"
#include "apps/training/metrics/ranking_metrics.h"
#include "apps/training/row_objective.h"
#include "data/base/error.h"
#include "models/layers/recompute.h"

namespace zoo {
namespace {

// Rows whose vectors are kept for the figures: each anchor is compared with all documents.
constexpr std::int64_t kMostMeasuredRows = 10'000;
// Below it all ranks are the same to the figures.
constexpr std::int64_t kLastRank = 11;

struct EmbeddingRow : RowCounts {
  const SentenceExample* example = nullptr;
  std::vector<Encoding> texts;  // the anchor, then its documents
  double score = 0;
};

std::vector<double> doubles_of(const at::Tensor& x) {
  const at::Tensor values = x.to(at::kDouble).contiguous();
  return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
}

class EmbeddingObjective final : public RowObjective<EmbeddingRow> {
 public:
  EmbeddingObjective(std::shared_ptr<Model> model, Embedders embedders, Splits<EmbeddingRow> rows,
                     const EmbeddingOptions& options)
      // Not by length: negatives as long as the positive would be no fair sample of all documents.
      : RowObjective(std::move(model), std::move(rows), {options.plan, options.seed, /*by_length=*/false}),
        embedders_(std::move(embedders)),
        options_(options) {}

  std::vector<Score> take_scores(double) override {
    const std::vector<EmbeddedBatch> measured = std::exchange(measured_, {});
    measured_rows_ = 0;
    if (measured.empty()) return {};
    if (!takes_scores(options_.loss.loss)) return ranking_scores(measured);
    std::vector<at::Tensor> wanted, found;
    for (const EmbeddedBatch& batch : measured) {
      wanted.push_back(batch.scores);
      found.push_back(cosines(batch));
    }
    return {{"spearman", spearman(doubles_of(at::cat(wanted)), doubles_of(at::cat(found)))}};
  }

 private:
  at::Tensor loss(const Rows& rows, bool measured) override {
    std::vector<const Encoding*> anchors, documents;
    std::vector<double> scores;
    for (const EmbeddingRow* row : rows) {
      anchors.push_back(&row->texts[0]);
      documents.push_back(&row->texts[1]);
      scores.push_back(row->score);
    }
    for (const EmbeddingRow* row : rows)
      for (std::size_t i = 2; i < row->texts.size(); ++i) documents.push_back(&row->texts[i]);
    EmbeddedBatch batch{.anchors = vectors(embedders_.queries, anchors),
                        .documents = vectors(embedders_.documents, documents)};
    if (takes_scores(options_.loss.loss))
      batch.scores = at::tensor(scores, at::kDouble).to(batch.anchors.device());
    if (measured && measured_rows_ < kMostMeasuredRows) {
      measured_rows_ += batch.anchors.size(0);
      const auto kept = [](const at::Tensor& x) { return x.defined() ? x.detach().cpu() : x; };
      measured_.push_back({kept(batch.anchors), kept(batch.documents), kept(batch.scores)});
    }
    return options_.teacher ? taught_loss(rows, batch) : embedding_loss(options_.loss, batch);
  }

  // The mean square of vectors' differences (Reimers and Gurevych, 2020), or of margins', the score of a
  // positive minus that of each negative (MarginMSE, Hofstätter et al., 2020).
  at::Tensor taught_loss(const Rows& rows, const EmbeddedBatch& batch) const {
    std::vector<std::string> queries, documents;
    std::vector<std::int64_t> numbers;  // rows of the documents
    const auto add = [&](std::size_t row, std::size_t text) {
      queries.push_back(rows[row]->example->texts[0]);
      documents.push_back(rows[row]->example->texts[text]);
      numbers.push_back(static_cast<std::int64_t>(row));
    };
    for (std::size_t row = 0; row < rows.size(); ++row) add(row, 1);
    for (std::size_t row = 0; row < rows.size(); ++row)
      for (std::size_t text = 2; text < rows[row]->texts.size(); ++text) add(row, text);
    if (!options_.teacher->scores_pairs) queries.resize(rows.size());
    const at::Tensor known = options_.teacher->answers(queries, documents).to(batch.anchors.device());
    if (!options_.teacher->scores_pairs)
      return at::mse_loss(at::cat({batch.anchors, batch.documents}), known);
    const at::Tensor owners = at::tensor(numbers, at::kLong).to(known.device());
    const at::Tensor scores = (batch.anchors.index_select(0, owners) * batch.documents).sum(-1);
    const auto margins = [&](const at::Tensor& x) {
      const std::int64_t positives = batch.anchors.size(0);
      return x.index_select(0, owners.slice(0, positives)) - x.slice(0, positives);
    };
    return at::mse_loss(margins(scores), margins(known));
  }

  at::Tensor vectors(const TextEmbedder& embedder, const std::vector<const Encoding*>& texts) const {
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

  static std::vector<Score> ranking_scores(const std::vector<EmbeddedBatch>& measured) {
    std::vector<at::Tensor> positives, negatives;
    for (const EmbeddedBatch& batch : measured) {
      positives.push_back(unit_vectors(batch.documents.slice(0, 0, batch.anchors.size(0))));
      negatives.push_back(unit_vectors(batch.documents.slice(0, batch.anchors.size(0))));
    }
    const at::Tensor own = at::cat(positives), documents = at::cat({own, at::cat(negatives)}).t();
    std::vector<std::vector<double>> gains;
    for (const EmbeddedBatch& batch : measured) {
      const at::Tensor scores = at::matmul(unit_vectors(batch.anchors), documents);
      const auto before = static_cast<std::int64_t>(gains.size()), rows = batch.anchors.size(0);
      const at::Tensor right = at::arange(before, before + rows).unsqueeze(1);
      // The positive counts itself, so that this is its rank.
      for (const double rank : doubles_of(scores.ge(scores.gather(1, right)).sum(1).clamp_max(kLastRank)))
        gains.emplace_back(static_cast<std::size_t>(rank)).back() = 1;
    }
    return mean_figures(gains);
  }

  Embedders embedders_;
  EmbeddingOptions options_;
  std::vector<EmbeddedBatch> measured_;  // on the CPU
  std::int64_t measured_rows_ = 0;
};

// Counts in `cut` the texts that are longer than the limit.
std::vector<EmbeddingRow> encoded(const std::vector<SentenceExample>& examples, const Embedders& embedders,
                                  std::int64_t& cut) {
  std::vector<EmbeddingRow> rows;
  for (const SentenceExample& example : examples) {
    EmbeddingRow& row = rows.emplace_back();
    row.example = &example;
    row.score = example.score.value_or(0);
    for (const std::string& text : example.texts) {
      const TextEmbedder& embedder = row.texts.empty() ? embedders.queries : embedders.documents;
      try {
        row.texts.push_back(std::move(embedder.encode({text}, /*truncates=*/false).front()));
        if (row.texts.back().size() > embedder.max_length().value_or(row.texts.back().size())) {
          ++cut;
          row.texts.back() = std::move(embedder.encode({text}).front());
        }
      } catch (const Error& error) {
        throw Error("line ", example.line, " of the data: ", error.what());
      }
      row.tokens += static_cast<std::int64_t>(row.texts.back().size());
    }
  }
  return rows;
}

}  // namespace

std::unique_ptr<Objective> embedding_objective(std::shared_ptr<Model> model, Embedders embedders,
                                               const Splits<SentenceExample>& examples,
                                               const EmbeddingOptions& options) {
  std::int64_t cut = 0;
  Splits<EmbeddingRow> rows{encoded(examples.train, embedders, cut), encoded(examples.val, embedders, cut)};
  const at::NoGradGuard no_grad;
  const Encoding* one = &rows.val.front().texts[0];
  const std::int64_t width = embedders.queries.vectors_of(std::span(&one, 1)).size(1);
  for (const std::int64_t size : options.loss.matryoshka_dims) {
    if (size > width)
      throw UsageError("--matryoshka_dims ", size, ": the model's vectors have only ", width, " numbers");
  }
  const std::vector<std::string> text{examples.val.front().texts[0]};
  if (options.teacher && !options.teacher->scores_pairs &&
      options.teacher->answers(text, text).size(1) != width)
    throw Error("--teacher: its vectors have another size than the student's ", width);
  if (rows.val.size() > static_cast<std::size_t>(kMostMeasuredRows))
    std::cerr << "note: the figures are those of the first " << kMostMeasuredRows << " examples\n";
  if (cut > 0)
    std::cerr << "note: " << cut << " texts are cut to " << *embedders.queries.max_length() << " tokens\n";
  return std::make_unique<EmbeddingObjective>(std::move(model), std::move(embedders), std::move(rows),
                                              options);
}

}  // namespace zoo
