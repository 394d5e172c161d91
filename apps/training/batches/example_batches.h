#pragma once

/// @file
/// Use:
///
///     zoo::ExampleBatches batches({train, val}, {.labels = zoo::LabelShape::kNumbers, .pad_id = 0},
///                                 {.batch_size = 32}, /*seed=*/1337, c10::kCPU);
///     const zoo::ModelBatch batch = batches.training(/*micro_step=*/0);

#include <array>
#include <vector>

#include "apps/training/batches/batches.h"
#include "data/tokens/masking.h"
#include "data/tokens/sampler.h"

namespace zoo {

/// An example as token ids. The task defines its labels.
struct Example {
  TokenIds input_ids;
  std::vector<std::int32_t> type_ids;  // BERT's segment ids, one per token; empty: all 0
  std::vector<std::int32_t> words;     // word index of each token, -1 none; for masking
  std::vector<std::int64_t> labels;    // see LabelShape
  double score = 0;                    // for kScore
  bool is_rejected = false;            // of answers to a prompt: the worse one
};

enum class LabelShape {
  kNumbers,   ///< a fixed count per example: a class [B], first and last token of an answer [B, 2]
  kScore,     ///< a number per example, [B] in float32
  kClasses,   ///< any of CollateOptions::classes per example, [B, classes]: 1, or 0 for the others
  kTokens,    ///< one per input token, [B, T]
  kSequence,  ///< a separate sequence, [B, U]: the target of an encoder-decoder
  kMasked,    ///< masked tokens, drawn at each use, [B, T]
};

using Examples = Splits<Example>;

struct CollateOptions {
  LabelShape labels = LabelShape::kNumbers;
  std::int64_t pad_id = 0;
  std::int64_t classes = 0;   // for kClasses
  bool has_segments = false;  // the model takes token_type_ids
  MaskingOptions masking;     // for kMasked
};

/// Which examples a batch has: in training each once per epoch (EpochSampler), in an evaluation each once.
class ExampleOrder {
 public:
  struct Options {
    BatchPlan plan;
    std::uint64_t seed = 0;
    bool by_length = true;  // a batch has examples of similar length; false: any
  };
  /// Throws Error if a split has no examples.
  ExampleOrder(const std::vector<std::int64_t>& train_lengths, const std::vector<std::int64_t>& val_lengths,
               const Options& options);

  std::vector<std::int64_t> training(std::int64_t micro_step);
  const std::vector<std::int64_t>& evaluation(Split split, std::int64_t index) const {
    return evaluation_[static_cast<std::size_t>(split)].at(static_cast<std::size_t>(index));
  }
  std::int64_t evaluation_batches(Split split) const {
    return std::ssize(evaluation_[static_cast<std::size_t>(split)]);
  }

 private:
  BatchPlan plan_;
  EpochSampler sampler_;
  std::array<std::vector<std::vector<std::int64_t>>, 2> evaluation_;  // by split
};

/// Pads examples to the longest of their batch; EpochSampler batches examples of similar length.
class ExampleBatches final : public Batches {
 public:
  /// Throws Error if a split has no examples, and for an example without tokens or with another number of
  /// labels, segments or words than its LabelShape needs.
  ExampleBatches(Examples examples, const CollateOptions& options, const BatchPlan& plan, std::uint64_t seed,
                 c10::Device device);

  ModelBatch training(std::int64_t micro_step) override;
  ModelBatch evaluation(Split split, std::int64_t index) override;
  std::int64_t evaluation_batches(Split split) const override { return order_.evaluation_batches(split); }

 private:
  ModelBatch collate(const std::vector<Example>& examples, std::span<const std::int64_t> rows,
                     const RandomStream::Position& place) const;
  at::Tensor labels_of(const std::vector<const Example*>& rows, at::IntArrayRef ids) const;
  void mask(const at::Tensor& ids, const std::vector<const Example*>& rows,
            const RandomStream::Position& place, const at::Tensor& labels) const;

  Examples examples_;
  CollateOptions options_;
  BatchPlan plan_;
  std::uint64_t seed_;
  c10::Device device_;
  ExampleOrder order_;
};

}  // namespace zoo
