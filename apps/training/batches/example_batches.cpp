#include "apps/training/batches/example_batches.h"

#include <algorithm>

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "apps/training/batches/block_batches.h"
#include "data/base/error.h"

namespace zoo {
namespace {

// Masking streams start here, separate from the streams of the example order.
constexpr std::uint32_t kMaskingStreams = 16;

std::vector<std::int64_t> lengths_of(const std::vector<Example>& examples) {
  std::vector<std::int64_t> lengths;
  for (const Example& example : examples)
    lengths.push_back(static_cast<std::int64_t>(example.input_ids.size() + example.labels.size()));
  return lengths;
}

template <class T>
std::size_t longest(const std::vector<const Example*>& rows, std::vector<T> Example::*part) {
  std::size_t longest = 0;
  for (const Example* row : rows) longest = std::max(longest, (row->*part).size());
  return longest;
}

// Pads one part of the examples at the end: [B, longest].
template <class T>
at::Tensor padded(const std::vector<const Example*>& rows, std::vector<T> Example::*part,
                  std::int64_t padding) {
  const auto width = static_cast<std::int64_t>(longest(rows, part));
  const at::Tensor tensor = at::full({static_cast<std::int64_t>(rows.size()), width}, padding, at::kLong);
  auto* out = tensor.mutable_data_ptr<std::int64_t>();
  for (const Example* row : rows) {
    std::copy((row->*part).begin(), (row->*part).end(), out);
    out += width;
  }
  return tensor;
}

}  // namespace

ExampleBatches::ExampleBatches(Examples examples, const CollateOptions& options, const BatchPlan& plan,
                               std::uint64_t seed, c10::Device device)
    : examples_(std::move(examples)),
      options_(options),
      plan_(plan),
      seed_(seed),
      device_(device),
      sampler_(lengths_of(examples_.train), plan.rows_per_update(), {seed, kTrainingStream}),
      train_evaluation_(
          evaluation_order(lengths_of(examples_.train), plan.batch_size, {seed, kTrainEvaluationStream})),
      val_evaluation_(
          evaluation_order(lengths_of(examples_.val), plan.batch_size, {seed, kValEvaluationStream})) {
  if (examples_.val.empty()) throw Error("there is no example to validate on");
}

ModelBatch ExampleBatches::training(std::int64_t micro_step) {
  const std::int64_t update = plan_.update_of(micro_step), first = plan_.first_row(micro_step);
  const std::vector<std::int64_t> all = sampler_.batch(update);
  const auto rows =
      std::span(all).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(plan_.batch_size));
  return collate(examples_.train, rows, {kTrainingStream, update, static_cast<std::uint32_t>(first)});
}

ModelBatch ExampleBatches::evaluation(Split split, std::int64_t index) {
  const bool train = split == Split::kTrain;
  return collate(train ? examples_.train : examples_.val,
                 (train ? train_evaluation_ : val_evaluation_).at(static_cast<std::size_t>(index)),
                 {train ? kTrainEvaluationStream : kValEvaluationStream, index, 0});
}

std::int64_t ExampleBatches::evaluation_batches(Split split) const {
  return static_cast<std::int64_t>((split == Split::kTrain ? train_evaluation_ : val_evaluation_).size());
}

ModelBatch ExampleBatches::collate(const std::vector<Example>& examples,
                                   std::span<const std::int64_t> numbers,
                                   const RandomStream::Position& place) const {
  std::vector<const Example*> rows;
  for (const std::int64_t number : numbers) rows.push_back(&examples[static_cast<std::size_t>(number)]);
  const at::Tensor ids = padded(rows, &Example::input_ids, options_.pad_id);
  at::Tensor labels = options_.labels == LabelShape::kMasked ? at::full(ids.sizes(), -100, at::kLong)
                                                             : padded(rows, &Example::labels, -100);
  if (options_.labels == LabelShape::kMasked) mask(ids, rows, place, labels);
  if (options_.labels == LabelShape::kNumbers && labels.size(1) == 1) labels = labels.squeeze(1);

  ModelBatch batch;
  const at::Tensor kept = at::zeros(ids.sizes(), at::kLong);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto length = static_cast<std::int64_t>(rows[row]->input_ids.size());
    kept[static_cast<std::int64_t>(row)].slice(0, 0, length).fill_(1);
    batch.tokens += length;
  }
  batch.inputs.input_ids = ids.to(device_);
  if (batch.tokens < ids.numel()) batch.inputs.attention_mask = kept.to(device_);
  if (options_.has_segments) {
    const at::Tensor types = padded(rows, &Example::type_ids, 0);
    if (types.size(1) == ids.size(1)) batch.inputs.token_type_ids = types.to(device_);
  }
  batch.inputs.labels = labels.to(device_);
  if (options_.labels == LabelShape::kMasked) {
    point_at_labels(labels, batch);
  } else if (options_.labels == LabelShape::kNumbers) {
    batch.targets = static_cast<double>(rows.size());
  } else {
    batch.targets = labels.ne(-100).sum().item<double>();
  }
  if (options_.labels == LabelShape::kSequence) batch.tokens += static_cast<std::int64_t>(batch.targets);
  return batch;
}

void ExampleBatches::mask(const at::Tensor& ids, const std::vector<const Example*>& rows,
                          const RandomStream::Position& place, const at::Tensor& labels) const {
  for (std::size_t row = 0; row < rows.size(); ++row) {
    RandomStream random(
        seed_, {place.stream + kMaskingStreams, place.step, place.row + static_cast<std::uint32_t>(row)});
    const auto width = static_cast<std::size_t>(ids.size(1)), length = rows[row]->words.size();
    const auto part = [&](const at::Tensor& tensor) {
      return std::span(tensor.mutable_data_ptr<std::int64_t>() + row * width, length);
    };
    apply_masks(draw_masks(rows[row]->words, options_.masking, random), options_.masking.mask_id, part(ids),
                part(labels));
  }
}

}  // namespace zoo
