#pragma once

#include <memory>

#include "apps/training/embedding_losses.h"
#include "apps/training/objective.h"
#include "data/examples/sentence_file.h"
#include "data/tokens/epoch_sampler.h"
#include "models/tasks/text_embedder.h"

namespace zoo {

struct SentenceSplits {
  std::vector<SentenceExample> train, val;
};

/// Texts, their vectors and the loss between them. The figures of an evaluation are those of its batches
/// together: of pairs and triplets accuracy, MRR@10 and nDCG@10 of the positive among all their documents (a
/// document of the same cosine ranks before it), of pairs with a score Spearman's correlation.
class EmbeddingObjective final : public Objective {
 public:
  struct Options {
    EmbeddingLossOptions loss;
    BatchPlan plan;
    std::uint64_t seed = 0;
    /// GradCache (Gao et al., 2021): texts whose activations are kept at a time. Each piece is computed again
    /// in the backward pass, so that the gradients are the whole batch's. 0: all at once.
    std::int64_t mini_batch_size = 0;
  };
  /// With the prompt of an anchor (or first sentence), and of a document.
  struct Embedders {
    TextEmbedder queries, documents;
  };

  EmbeddingObjective(std::shared_ptr<Model> model, Embedders embedders, const SentenceSplits& examples,
                     const Options& options);

  torch::nn::Module& module() override { return *model_; }
  Batch training(std::int64_t micro_step) override;
  Batch evaluation(Split split, std::int64_t index) override;
  std::int64_t evaluation_batches(Split split) const override;
  std::vector<Score> take_scores(double loss) override;

  /// Size of a vector.
  std::int64_t width() const;
  /// Number of texts that are longer than the limit.
  std::int64_t cut() const { return cut_; }

 private:
  struct Row {
    Encoding anchor;
    std::vector<Encoding> documents;
    double score = 0;
  };
  using Rows = std::vector<const Row*>;

  std::vector<Row> encoded(const std::vector<SentenceExample>& examples);
  Batch batch(Rows rows, bool measured);
  EmbeddedBatch embed(const Rows& rows) const;
  at::Tensor vectors(const TextEmbedder& embedder, const std::vector<const Encoding*>& texts) const;
  void measure(const EmbeddedBatch& batch);
  std::vector<Score> ranking_scores() const;

  std::shared_ptr<Model> model_;
  Embedders embedders_;
  Options options_;
  std::int64_t cut_ = 0;
  std::vector<Row> train_, val_;
  EpochSampler sampler_;
  std::vector<std::vector<std::int64_t>> train_evaluation_, val_evaluation_;
  std::vector<EmbeddedBatch> measured_;  // on the CPU
  std::int64_t measured_rows_ = 0;
};

}  // namespace zoo
