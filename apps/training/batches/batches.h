#pragma once

/// @file
/// Use:
///
///     const zoo::ModelBatch batch = batches.training(/*micro_step=*/0);  // of a class derived from Batches
///     const zoo::ModelOutput output = model->forward(batch.inputs);

#include <cstdint>
#include <limits>
#include <vector>

#include "models/model.h"

namespace zoo {

enum class Split { kTrain, kVal };

template <class Row> struct Splits { std::vector<Row> train, val; };

/// Splits the examples of an update: `accumulation` micro steps in sequence on each of `ranks` processes in
/// parallel. The examples depend only on the update's number: 4 micro steps of 3 rows use the same examples
/// as 1 of 12.
struct BatchPlan {
  std::int64_t batch_size = 1;  // rows per micro step and rank
  std::int64_t accumulation = 1;
  std::int64_t rank = 0, ranks = 1;

  std::int64_t rows_per_update() const { return batch_size * accumulation * ranks; }
  std::int64_t update_of(std::int64_t micro_step) const { return micro_step / accumulation; }
  /// Index of the micro step's first row among the rows of its update.
  std::int64_t first_row(std::int64_t micro_step) const {
    return (micro_step % accumulation * ranks + rank) * batch_size;
  }
};

/// Inputs of a forward pass and their counts.
struct ModelBatch {
  ModelInputs inputs;
  /// Number of targets that the loss averages over; weights the loss against other batches.
  double targets = 0;
  std::int64_t tokens = 0;  // non-padding tokens, for tokens per second
};

/// Random streams of a run (RandomStream, RandomBlockSampler), one per use, so that the uses are independent.
inline constexpr std::uint32_t kTrainingStream = 0, kTrainEvaluationStream = 1, kValEvaluationStream = 2;

inline constexpr std::int64_t kUnlimitedBatches = std::numeric_limits<std::int64_t>::max();

/// Source of training batches. A batch is a pure function of its number: a resumed run continues with the
/// next batch, and every evaluation sees the same batches.
class Batches {
 public:
  virtual ~Batches() = default;

  /// The batch of micro step number update * accumulation + step within the update.
  virtual ModelBatch training(std::int64_t micro_step) = 0;

  /// Batch `index` of an evaluation, from either split; the same on every rank.
  virtual ModelBatch evaluation(Split split, std::int64_t index) = 0;

  /// Number of batches that cover the split once; kUnlimitedBatches if batches are drawn at random.
  virtual std::int64_t evaluation_batches(Split) const { return kUnlimitedBatches; }
};

}  // namespace zoo
