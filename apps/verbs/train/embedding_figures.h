#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/training/records/metrics_log.h"
#include "apps/training/retrieval_losses.h"
#include "data/examples/sentence_file.h"

namespace zoo {

/// Rows that are kept.
inline constexpr std::int64_t kMostMeasuredRows = 10'000;

/// The figures of an embedding model over the batches of an evaluation, whose vectors it keeps: each text is
/// compared with all others.
class EmbeddingFigures {
 public:
  /// As the model is used: its similarity, "cosine", "dot", "euclidean" or "manhattan", and how much of a
  /// vector it takes.
  EmbeddingFigures(EmbeddingLoss loss, std::string similarity, std::optional<std::int64_t> truncate_dim)
      : loss_(loss), similarity_(std::move(similarity)), truncate_dim_(truncate_dim) {}

  /// False if there are so many rows that the next ones are not kept.
  bool takes_more() const { return rows_ < kMostMeasuredRows; }
  /// The examples of the batch's anchors. Throws Error if a number is not finite.
  void add(const EmbeddedBatch& batch, std::vector<const SentenceExample*> examples);

  /// Of what was added since the last call: spearman of pairs with a score; of texts with a label accuracy,
  /// how often the nearest other text has the same one; else the rank of each anchor's positive among all
  /// documents (mean_figures()), in which a document of the same similarity ranks before the positive.
  std::vector<Score> take();

 private:
  struct Batch {
    EmbeddedBatch vectors;  // on the CPU
    std::vector<const SentenceExample*> examples;
  };
  using Batches = std::vector<Batch>;

  at::Tensor similarities(const at::Tensor& anchors, const at::Tensor& documents) const;
  std::vector<Score> scores_of_pairs(const Batches& batches) const;
  std::vector<Score> scores_of_labels(const Batches& batches) const;
  std::vector<Score> scores_of_ranks(const Batches& batches) const;

  EmbeddingLoss loss_;
  std::string similarity_;
  std::optional<std::int64_t> truncate_dim_;
  Batches batches_;
  std::int64_t rows_ = 0;
};

}  // namespace zoo
