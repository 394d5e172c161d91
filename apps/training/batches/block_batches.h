#pragma once

#include <array>

#include "apps/training/batches/batches.h"
#include "data/tokens/masking.h"
#include "data/tokens/sampler.h"
#include "data/tokens/span_corruption.h"
#include "data/tokens/token_dataset.h"

namespace zoo {

/// Rows of a batch, each a random block of a token sequence: nothing is padded.
class BlockBatches : public Batches {
 public:
  /// `tokens` of the sequence make a row. Throws Error if a split has not more than that.
  BlockBatches(const TokenDataset& dataset, std::int64_t tokens, const BatchPlan& plan, std::uint64_t seed,
               c10::Device device);

  ModelBatch training(std::int64_t micro_step) final;
  ModelBatch evaluation(Split split, std::int64_t index) final;

 protected:
  /// Raw rows: inputs [B, T], and the tokens that follow each of them.
  struct Blocks {
    at::Tensor inputs, following;
  };
  /// What to learn from them. `place` is that of the first row, for further random numbers.
  virtual ModelBatch make(const Blocks& blocks, const RandomStream::Place& place) const = 0;

  RandomStream random(RandomStream::Place place, std::int64_t row) const;
  at::Tensor empty(std::int64_t columns) const;
  at::Tensor send(const at::Tensor& tensor) const { return tensor.to(device_, /*non_blocking=*/true); }

  BatchPlan plan_;

 private:
  ModelBatch batch(const RandomBlockSampler& sampler, std::int64_t step,
                   const RandomStream::Place& place) const;

  std::uint64_t seed_;
  std::array<RandomBlockSampler, 3>
      samplers_;  // training; evaluation of the training and the validation split
  c10::Device device_;
};

/// Language modelling: each token predicts the next one.
class LanguageModelBatches final : public BlockBatches {
 public:
  using BlockBatches::BlockBatches;

 private:
  ModelBatch make(const Blocks& blocks, const RandomStream::Place& place) const override;
};

/// Around a row of a masked language model, [CLS] … [SEP], as far as the tokenizer has them.
struct RowEnds {
  std::optional<TokenId> begin, end;
  std::int64_t size() const { return (begin ? 1 : 0) + (end ? 1 : 0); }
};

/// Masked language modelling: other tokens are hidden each time that a block comes up.
class MaskedBlockBatches final : public BlockBatches {
 public:
  struct Options {
    std::int64_t block_size = 0;  // of a row, its ends included
    RowEnds ends;
    MaskingOptions masking;
    std::vector<bool> begins_word;  // by id, for whole words; empty: every token does
  };
  MaskedBlockBatches(const TokenDataset& dataset, Options options, const BatchPlan& plan, std::uint64_t seed,
                     c10::Device device);

 private:
  ModelBatch make(const Blocks& blocks, const RandomStream::Place& place) const override;
  std::vector<std::int32_t> words_of(std::span<const std::int64_t> row) const;

  Options options_;
};

/// T5's span corruption. block_size counts the tokens of an input.
class SpanCorruptionBatches final : public BlockBatches {
 public:
  SpanCorruptionBatches(const TokenDataset& dataset, std::int64_t block_size, SpanCorruptionOptions options,
                        const BatchPlan& plan, std::uint64_t seed, c10::Device device);

 private:
  ModelBatch make(const Blocks& blocks, const RandomStream::Place& place) const override;

  SpanCorruptionOptions options_;
  SpanCorruptionLengths lengths_;
};

/// Points the head at the labels that count, and counts them: labels [B, T] on the CPU.
void point_at_labels(const at::Tensor& labels, ModelBatch& batch);

}  // namespace zoo
