#pragma once

#include <filesystem>
#include <memory>
#include <type_traits>

#include "apps/training/batches/encode_examples.h"
#include "apps/training/objective.h"
#include "apps/training/records/run_directory.h"
#include "apps/training/retrieval_losses.h"
#include "apps/verbs/train/train_data.h"
#include "models/checkpoint/checkpoint.h"
#include "models/tasks/text_embedder.h"

namespace zoo {

/// The training of a language model on chosen and rejected answers, with the losses of preference_losses.h
/// and the numbers of TRL's trainers. kto takes pairs as two answers; its kl compares model and reference on
/// each prompt with the answer of the row before. orpo adds the mean loss of all tokens of prompts and chosen
/// answers. The figures are TRL's, too; rewards are beta times the log-ratio.
/// `reference` becomes that of the model as it is, or that of a resumed run in the file `kept`, unless the
/// loss has none. Throws Error naming the data or file that does not fit.
std::unique_ptr<Objective> preference_objective(const TrainFlags& flags, const LoadedModel& loaded,
                                                const TaskData& data, const BatchPlan& plan,
                                                const std::filesystem::path& kept, NamedTensors& reference);

/// The training of a cross-encoder (Nogueira and Cho, 2019): a classifier with one label reads a query and a
/// document. The figures of an evaluation are accuracy, MRR, nDCG and recall@10 of the queries that have a
/// relevant document beside another one (of equal logits the less relevant ranks first), else Spearman's
/// correlation of logits and labels. Throws Error naming the data if it does not have what the loss needs.
std::unique_ptr<Objective> ranking_objective(const TrainFlags& flags, const LoadedModel& loaded,
                                             const TaskData& data, const BatchPlan& plan);

/// What `row_of` makes of each example. Its Error gets the name of the data and the line.
template <class RowOf> auto rows_of_examples(const TaskData& data, RowOf row_of) {
  Splits<std::invoke_result_t<RowOf, const SentenceExample&>> rows;
  const auto add = [&](const std::vector<SentenceExample>& examples, const std::string& source, auto& to) {
    for (const SentenceExample& example : examples)
      to.push_back(at_line(source, example.line, [&] { return row_of(example); }));
  };
  add(data.sentences.train, data.source, rows.train);
  add(data.sentences.val, data.val_source, rows.val);
  return rows;
}

/// Adds the activation of the trained loss to the config.json of a saved cross-encoder, unless the directory
/// names one: CrossEncoder.predict() applies it.
void name_activation(const TrainFlags& flags, const std::filesystem::path& directory);

/// Rows whose vectors EmbeddingFigures keeps.
inline constexpr std::int64_t kMostMeasuredRows = 10'000;

/// The figures of an embedding model over an evaluation, whose vectors it keeps to compare each with all.
class EmbeddingFigures {
 public:
  /// How the model is used: "cosine", "dot", "euclidean" or "manhattan", and how much of a vector it takes.
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

/// A model of vectors in training: the modules of its Sentence-Transformers directory, whose weights are
/// trained with the model's, the loss and the figures. A plain checkpoint gets mean pooling.
class EmbeddingTask {
 public:
  /// Adds the modules' weights to the model. Throws Error for what cannot be trained: an encoder-decoder, a
  /// Dropout, flags of other tasks.
  EmbeddingTask(const TrainFlags& flags, const CheckpointConfig& checkpoint, const LoadedModel& loaded,
                c10::Device device);

  /// An evaluation has the EmbeddingFigures. Throws Error naming the data if its pairs do not have what the
  /// loss needs, or for a teacher's vectors of another size, UsageError naming a size of --matryoshka_dims
  /// above the vectors'. `data` must outlive the objective.
  std::unique_ptr<Objective> objective(const TaskData& data, const BatchPlan& plan) const;

  /// True if a module behind the model, such as a Dense, has weights.
  bool has_weights() const;

  /// Writes the modules' weights into a saved directory, and Sentence-Transformers' files if it lacks them.
  void save(const std::filesystem::path& directory) const;

 private:
  const TrainFlags& flags_;
  std::shared_ptr<Model> model_;
  std::shared_ptr<const TextEmbedder> embedder_;
  SentenceConfig config_;
};

}  // namespace zoo
