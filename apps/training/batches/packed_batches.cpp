#include "apps/training/batches/packed_batches.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "data/base/error.h"
#include "data/tokens/packing.h"

namespace zoo {

PackedBatches::Packed PackedBatches::packed(const TokenFile& tokens, TokenId end,
                                            std::optional<TokenId> first, std::int64_t block_size) {
  Packed split;
  std::vector<std::size_t> begins;
  for (const DocumentPart& part : document_parts(tokens, end, block_size, first)) {
    begins.push_back(part.begin);
    split.lengths.push_back(part.length);
  }
  split.rows = pack_best_fit(split.lengths, block_size);
  split.copy = [tokens, begins = std::move(begins)](std::size_t part, std::span<std::int64_t> inputs,
                                                    std::span<std::int64_t> targets) {
    tokens.copy(begins[part], inputs);
    tokens.copy(begins[part] + 1, targets);
  };
  return split;
}

// The last id of an example predicts nothing.
PackedBatches::Packed PackedBatches::packed(std::vector<Example> examples, std::int64_t block_size) {
  Packed split;
  for (const Example& example : examples) split.lengths.push_back(std::ssize(example.input_ids) - 1);
  split.rows = pack_best_fit(split.lengths, block_size);
  split.copy = [all = std::move(examples)](std::size_t part, std::span<std::int64_t> inputs,
                                           std::span<std::int64_t> targets) {
    const Example& example = all[part];
    std::copy_n(example.input_ids.begin(), inputs.size(), inputs.begin());
    std::copy_n(example.labels.begin() + 1, targets.size(), targets.begin());
  };
  return split;
}

PackedBatches::PackedBatches(const TokenDataset& dataset, TokenId end, std::int64_t block_size,
                             const BatchPlan& plan, std::uint64_t seed, c10::Device device,
                             std::optional<TokenId> first)
    : PackedBatches(packed(dataset.train, end, first, block_size),
                    packed(dataset.val, end, first, block_size), block_size, plan, seed, device) {
  if (!dataset.others.empty())
    throw Error("a mixture of datasets cannot be packed: its rows are blocks of one text each");
}

PackedBatches::PackedBatches(Examples examples, std::int64_t block_size, const BatchPlan& plan,
                             std::uint64_t seed, c10::Device device)
    : PackedBatches(packed(std::move(examples.train), block_size),
                    packed(std::move(examples.val), block_size), block_size, plan, seed, device) {}

PackedBatches::PackedBatches(Packed train, Packed val, std::int64_t block_size, const BatchPlan& plan,
                             std::uint64_t seed, c10::Device device)
    : splits_{std::move(train), std::move(val)},
      block_size_(block_size),
      device_(device),
      order_(std::vector<std::int64_t>(splits_[0].rows.size(), 1),
             std::vector<std::int64_t>(splits_[1].rows.size(), 1), {plan, seed, /*by_length=*/false}) {}

ModelBatch PackedBatches::batch(const Packed& split, std::span<const std::int64_t> rows) const {
  const auto count = std::ssize(rows);
  const at::Tensor ids = at::zeros({count, block_size_}, at::kLong);
  const at::Tensor targets = at::full({count, block_size_}, -100, at::kLong);
  ModelBatch batch;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t place = i * block_size_;
    for (const std::size_t part : split.rows[static_cast<std::size_t>(rows[static_cast<std::size_t>(i)])]) {
      const std::int64_t length = split.lengths[part];
      split.copy(part, {ids.mutable_data_ptr<std::int64_t>() + place, static_cast<std::size_t>(length)},
                 {targets.mutable_data_ptr<std::int64_t>() + place, static_cast<std::size_t>(length)});
      batch.inputs.documents.push_back(length);
      batch.tokens += length;
      place += length;
    }
    if (const std::int64_t padding = (i + 1) * block_size_ - place; padding > 0)
      batch.inputs.documents.push_back(padding);
  }
  batch.targets = targets.ne(-100).sum().item<double>();
  batch.inputs.input_ids = ids.to(device_);
  batch.inputs.targets = targets.to(device_);
  return batch;
}

}  // namespace zoo
