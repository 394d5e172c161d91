#pragma once

#include <cstdint>
#include <limits>

#include "models/model.h"

namespace zoo {

enum class Split { kTrain, kVal };

/// How the examples of an update are divided: `accumulation` micro steps one after the other, on each of
/// `ranks` processes beside each other. Which examples an update has depends on their number alone, so that 4
/// micro steps of 3 learn from the same as 1 of 12.
struct BatchPlan {
  std::int64_t batch_size = 1;  // rows of a micro step on one rank
  std::int64_t accumulation = 1;
  std::int64_t rank = 0, ranks = 1;

  std::int64_t rows_per_update() const { return batch_size * accumulation * ranks; }
  std::int64_t update_of(std::int64_t micro_step) const { return micro_step / accumulation; }
  /// The first of the micro step's rows among those of its update.
  std::int64_t first_row(std::int64_t micro_step) const {
    return (micro_step % accumulation * ranks + rank) * batch_size;
  }
};

/// What a forward pass is given, with what is counted of it.
struct ModelBatch {
  ModelInputs inputs;
  /// The weight of its loss beside other batches': how many targets it is the mean over.
  double targets = 0;
  std::int64_t tokens = 0;  // that are not padding, for tokens per second
};

/// Random streams of a run (RandomStream, RandomBlockSampler): one for each use, so that none shifts another.
inline constexpr std::uint32_t kTrainingStream = 0, kTrainEvaluationStream = 1, kValEvaluationStream = 2;

inline constexpr std::int64_t kUnlimitedBatches = std::numeric_limits<std::int64_t>::max();

/// Where a training takes its batches from. A batch is a pure function of its number: a resumed run goes on
/// with the batch that follows, and evaluation sees the same batches each time.
class Batches {
 public:
  virtual ~Batches() = default;

  /// The batch of a micro step: update * accumulation + the step within the update.
  virtual ModelBatch training(std::int64_t micro_step) = 0;

  /// Batch `index` of an evaluation, from either split; the same on every rank.
  virtual ModelBatch evaluation(Split split, std::int64_t index) = 0;

  /// How many batches hold each example of the split once; kUnlimitedBatches where they are drawn.
  virtual std::int64_t evaluation_batches(Split) const { return kUnlimitedBatches; }
};

}  // namespace zoo
