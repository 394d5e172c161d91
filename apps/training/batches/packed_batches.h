#pragma once

#include <functional>
#include <span>

#include "apps/training/batches/example_batches.h"
#include "data/tokens/token_dataset.h"

namespace zoo {

/// Rows of block_size tokens that hold complete documents one after another (pack_best_fit()), for causal
/// models: ModelInputs::documents keeps each from seeing the others. Every document is used once per epoch;
/// what is left of a row is padding without targets.
class PackedBatches final : public Batches {
 public:
  /// The documents of token files end in the id `end` and may begin with `first`; longer ones are cut. Throws
  /// Error if a split has no `end`, and for a mixture.
  PackedBatches(const TokenDataset& dataset, TokenId end, std::int64_t block_size, const BatchPlan& plan,
                std::uint64_t seed, c10::Device device, std::optional<TokenId> first = std::nullopt);

  /// Examples with a label for each id (LabelShape::kTokens), of at most block_size ids.
  PackedBatches(Examples examples, std::int64_t block_size, const BatchPlan& plan, std::uint64_t seed,
                c10::Device device);

  ModelBatch training(std::int64_t micro_step) override {
    return batch(splits_[0], order_.training(micro_step));
  }
  ModelBatch evaluation(Split split, std::int64_t index) override {
    return batch(splits_[static_cast<std::size_t>(split)], order_.evaluation(split, index));
  }
  std::int64_t evaluation_batches(Split split) const override { return order_.evaluation_batches(split); }

 private:
  struct Packed {
    std::vector<std::int64_t> lengths;           // of parts
    std::vector<std::vector<std::size_t>> rows;  // their parts
    /// Writes the inputs of a part, and the target of each.
    std::function<void(std::size_t part, std::span<std::int64_t> inputs, std::span<std::int64_t> targets)>
        copy;
  };
  static Packed packed(const TokenFile& tokens, TokenId end, std::optional<TokenId> first,
                       std::int64_t block_size);
  static Packed packed(std::vector<Example> examples, std::int64_t block_size);
  PackedBatches(Packed train, Packed val, std::int64_t block_size, const BatchPlan& plan, std::uint64_t seed,
                c10::Device device);
  ModelBatch batch(const Packed& split, std::span<const std::int64_t> rows) const;

  std::array<Packed, 2> splits_;
  std::int64_t block_size_;
  c10::Device device_;
  ExampleOrder order_;
};

}  // namespace zoo
