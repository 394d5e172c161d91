#pragma once

#include <array>

#include "apps/training/batches/batches.h"
#include "data/tokens/masking.h"
#include "data/tokens/sampler.h"
#include "data/tokens/span_corruption.h"
#include "data/tokens/token_dataset.h"

namespace zoo {

/// Each row of a batch is a random block of a token sequence, or of one of a mixture; there is no padding.
class BlockBatches : public Batches {
 public:
  /// A row has `tokens` tokens. Throws Error if a split does not have more than `tokens`.
  BlockBatches(const TokenDataset& dataset, std::int64_t tokens, const BatchPlan& plan, std::uint64_t seed,
               c10::Device device);

  ModelBatch training(std::int64_t micro_step) final;
  ModelBatch evaluation(Split split, std::int64_t index) final;

 protected:
  /// Raw rows: inputs [B, T] and, as targets, the token that follows each input.
  struct Blocks {
    at::Tensor inputs, following;
  };
  /// Makes inputs and labels from the rows. `place` is the first row's position, for further random numbers.
  virtual ModelBatch make(const Blocks& blocks, const RandomStream::Position& place) const = 0;

  RandomStream random(RandomStream::Position place, std::int64_t row) const;
  at::Tensor empty(std::int64_t columns) const;
  at::Tensor send(const at::Tensor& tensor) const { return tensor.to(device_, /*non_blocking=*/true); }

  BatchPlan plan_;

 private:
  ModelBatch batch(const RandomStream::Position& place) const;

  std::uint64_t seed_;
  std::array<RandomBlockSampler, 3> samplers_;  // by the stream of a place
  c10::Device device_;
};

/// Language modelling: each token predicts the next one.
class LanguageModelBatches final : public BlockBatches {
 public:
  using BlockBatches::BlockBatches;

 private:
  ModelBatch make(const Blocks& blocks, const RandomStream::Position& place) const override;
};

/// Tokens around a row of a masked language model, [CLS] … [SEP], if the tokenizer has them.
struct RowEnds {
  std::optional<TokenId> begin, end;
  std::int64_t size() const { return (begin ? 1 : 0) + (end ? 1 : 0); }
};

/// Masked language modelling with dynamic masking: each use of a block masks different tokens.
class MaskedBlockBatches final : public BlockBatches {
 public:
  struct Options {
    std::int64_t block_size = 0;  // row length including its ends
    RowEnds ends;
    MaskingOptions masking;
    std::vector<bool> begins_word;  // by token id, for whole-word masking; empty: every token begins one
  };
  MaskedBlockBatches(const TokenDataset& dataset, Options options, const BatchPlan& plan, std::uint64_t seed,
                     c10::Device device);

 private:
  ModelBatch make(const Blocks& blocks, const RandomStream::Position& place) const override;
  std::vector<std::int32_t> words_of(std::span<const std::int64_t> row) const;

  Options options_;
};

/// T5's span corruption. block_size is the number of input tokens.
class SpanCorruptionBatches final : public BlockBatches {
 public:
  SpanCorruptionBatches(const TokenDataset& dataset, std::int64_t block_size, SpanCorruptionOptions options,
                        const BatchPlan& plan, std::uint64_t seed, c10::Device device);

 private:
  ModelBatch make(const Blocks& blocks, const RandomStream::Position& place) const override;

  SpanCorruptionOptions options_;
  SpanCorruptionLengths lengths_;
};

/// Sets label_positions to the labels that are not ignored, and their number: labels [B, T] on the CPU.
void point_at_labels(const at::Tensor& labels, ModelBatch& batch);

}  // namespace zoo
