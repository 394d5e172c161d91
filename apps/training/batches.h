#pragma once

#include "data/sampler.h"
#include "data/token_dataset.h"
#include "models/model.h"

namespace zoo {

enum class Split { kTrain, kVal };

/// Where a training takes its batches from. A batch is a pure function of its number: a resumed run goes on
/// with the batch that follows, and evaluation sees the same batches each time.
class Batches {
 public:
  virtual ~Batches() = default;

  /// The batch of a micro step: iteration * gradient_accumulation_steps + the step within the iteration.
  virtual ModelInputs training(std::int64_t micro_step) = 0;
  /// Batch `index` of an evaluation, from either split.
  virtual ModelInputs evaluation(Split split, std::int64_t index) = 0;

  /// Tokens in a batch, for tokens per second.
  virtual std::int64_t tokens_per_batch() const = 0;
};

struct BlockShape {
  std::int64_t batch_size, block_size;
};

/// Language modelling on random blocks of a token sequence.
class LanguageModelBatches : public Batches {
 public:
  /// Throws Error if a split is shorter than a block.
  LanguageModelBatches(const TokenDataset& dataset, const BlockShape& shape, std::uint64_t seed,
                       c10::Device device);

  ModelInputs training(std::int64_t micro_step) override;
  ModelInputs evaluation(Split split, std::int64_t index) override;
  std::int64_t tokens_per_batch() const override { return shape_.batch_size * shape_.block_size; }

 private:
  ModelInputs batch(const RandomBlockSampler& sampler, std::int64_t step) const;

  BlockShape shape_;
  RandomBlockSampler training_, train_evaluation_, val_evaluation_;
  c10::Device device_;
};

}  // namespace zoo
