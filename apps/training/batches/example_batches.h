#pragma once

#include <optional>
#include <vector>

#include "apps/training/batches/batches.h"
#include "data/tokens/epoch_sampler.h"
#include "data/tokens/masking.h"

namespace zoo {

/// An example as ids. What its labels are, the task says.
struct Example {
  std::vector<TokenId> input_ids;
  std::vector<std::int32_t> type_ids;  // BERT's segments, as many; empty: all 0
  std::vector<std::int32_t> words;     // which word each token is of, -1 none; for masking
  std::vector<std::int64_t> labels;    // by LabelShape
};

enum class LabelShape {
  kNumbers,   ///< each example has as many: a class [B], first and last token of an answer [B, 2]
  kTokens,    ///< one for each input token, [B, T]
  kSequence,  ///< a sequence of its own, [B, U]: what an encoder-decoder shall write
  kMasked,    ///< made anew each time by hiding tokens, [B, T]
};

struct Examples {
  std::vector<Example> train, val;
};

struct CollateOptions {
  LabelShape labels = LabelShape::kNumbers;
  std::int64_t pad_id = 0;
  bool has_segments = false;  // the model takes token_type_ids
  MaskingOptions masking;     // of kMasked
};

/// Examples padded to the longest of their batch, which are of like length (EpochSampler).
class ExampleBatches final : public Batches {
 public:
  /// Throws Error if a split has no example.
  ExampleBatches(Examples examples, const CollateOptions& options, const BatchPlan& plan, std::uint64_t seed,
                 c10::Device device);

  ModelBatch training(std::int64_t micro_step) override;
  ModelBatch evaluation(Split split, std::int64_t index) override;
  std::int64_t evaluation_batches(Split split) const override;

 private:
  ModelBatch collate(const std::vector<Example>& examples, std::span<const std::int64_t> rows,
                     const RandomStream::Place& place) const;
  void mask(const at::Tensor& ids, const std::vector<const Example*>& rows, const RandomStream::Place& place,
            const at::Tensor& labels) const;

  Examples examples_;
  CollateOptions options_;
  BatchPlan plan_;
  std::uint64_t seed_;
  c10::Device device_;
  EpochSampler sampler_;
  std::vector<std::vector<std::int64_t>> train_evaluation_, val_evaluation_;
};

}  // namespace zoo
