#pragma once

/// @file
/// Use:
///
///     zoo::ExampleBatches batches({train, val}, {.labels = zoo::LabelShape::kNumbers, .pad_id = 0},
///                                 {.batch_size = 32}, /*seed=*/1337, c10::kCPU);
///     const zoo::ModelBatch batch = batches.training(/*micro_step=*/0);

#include <optional>
#include <vector>

#include "apps/training/batches/batches.h"
#include "data/tokens/epoch_sampler.h"
#include "data/tokens/masking.h"

namespace zoo {

/// An example as token ids. The task defines its labels.
struct Example {
  TokenIds input_ids;
  std::vector<std::int32_t> type_ids;  // BERT's segment ids, one per token; empty: all 0
  std::vector<std::int32_t> words;     // word index of each token, -1 none; for masking
  std::vector<std::int64_t> labels;    // see LabelShape
};

enum class LabelShape {
  kNumbers,   ///< a fixed count per example: a class [B], first and last token of an answer [B, 2]
  kTokens,    ///< one per input token, [B, T]
  kSequence,  ///< a separate sequence, [B, U]: the target of an encoder-decoder
  kMasked,    ///< masked tokens, drawn at each use, [B, T]
};

struct Examples {
  std::vector<Example> train, val;
};

struct CollateOptions {
  LabelShape labels = LabelShape::kNumbers;
  std::int64_t pad_id = 0;
  bool has_segments = false;  // the model takes token_type_ids
  MaskingOptions masking;     // for kMasked
};

/// Pads examples to the longest of their batch; EpochSampler batches examples of similar length.
class ExampleBatches final : public Batches {
 public:
  /// Throws Error if a split has no examples.
  ExampleBatches(Examples examples, const CollateOptions& options, const BatchPlan& plan, std::uint64_t seed,
                 c10::Device device);

  ModelBatch training(std::int64_t micro_step) override;
  ModelBatch evaluation(Split split, std::int64_t index) override;
  std::int64_t evaluation_batches(Split split) const override;

 private:
  ModelBatch collate(const std::vector<Example>& examples, std::span<const std::int64_t> rows,
                     const RandomStream::Position& place) const;
  void mask(const at::Tensor& ids, const std::vector<const Example*>& rows,
            const RandomStream::Position& place, const at::Tensor& labels) const;

  Examples examples_;
  CollateOptions options_;
  BatchPlan plan_;
  std::uint64_t seed_;
  c10::Device device_;
  EpochSampler sampler_;
  std::vector<std::vector<std::int64_t>> train_evaluation_, val_evaluation_;
};

}  // namespace zoo
