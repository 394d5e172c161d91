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

// What is missing in a row would be trained on as padding.
void require_whole(const std::vector<Example>& examples, const CollateOptions& options) {
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const Example& example = examples[i];
    const std::size_t tokens = example.input_ids.size(), labels = example.labels.size();
    const auto require = [&](bool fits, const char* part, std::size_t size, auto expected) {
      if (!fits) throw Error("example ", i, " has ", size, " ", part, "; expected ", expected);
    };
    require(tokens > 0, "input_ids", tokens, "at least one");
    if (options.has_segments && !example.type_ids.empty())
      require(example.type_ids.size() == tokens, "type_ids", example.type_ids.size(), tokens);
    if (options.labels == LabelShape::kNumbers) {
      require(labels > 0, "labels", labels, "at least one");
      require(labels == examples[0].labels.size(), "labels", labels, examples[0].labels.size());
    }
    if (options.labels == LabelShape::kTokens) require(labels == tokens, "labels", labels, tokens);
    if (options.labels == LabelShape::kMasked)
      require(example.words.size() == tokens, "words", example.words.size(), tokens);
  }
}

// Pads one part of the examples at the end: [B, longest], or [B, width].
template <class T>
at::Tensor padded(const std::vector<const Example*>& rows, std::vector<T> Example::*part,
                  std::int64_t padding, std::int64_t width = 0) {
  width = std::max(width, static_cast<std::int64_t>(longest(rows, part)));
  const at::Tensor tensor = at::full({std::ssize(rows), width}, padding, at::kLong);
  auto* out = tensor.mutable_data_ptr<std::int64_t>();
  for (const Example* row : rows) {
    std::copy((row->*part).begin(), (row->*part).end(), out);
    out += width;
  }
  return tensor;
}

// Batches in random order, since an evaluation may use only the first few.
std::vector<std::vector<std::int64_t>> evaluation_batches_of(const std::vector<std::int64_t>& lengths,
                                                             const ExampleOrder::Options& options,
                                                             std::uint32_t stream) {
  const std::int64_t size = options.plan.batch_size;
  if (options.by_length) return evaluation_order(lengths, size, {options.seed, stream});
  std::vector<std::int64_t> places(lengths.size());
  auto next = std::ssize(lengths);
  for (const std::int64_t i : RandomStream(options.seed, {.stream = stream}).permutation(next))
    places[static_cast<std::size_t>(i)] = next--;
  return batches_by_length(places, size);
}

}  // namespace

ExampleOrder::ExampleOrder(const std::vector<std::int64_t>& train_lengths,
                           const std::vector<std::int64_t>& val_lengths, const Options& options)
    : plan_(options.plan),
      sampler_(options.by_length ? train_lengths : std::vector<std::int64_t>(train_lengths.size(), 1),
               plan_.rows_per_update(), {options.seed, kTrainingStream}),
      evaluation_{evaluation_batches_of(train_lengths, options, kTrainEvaluationStream),
                  evaluation_batches_of(val_lengths, options, kValEvaluationStream)} {
  if (val_lengths.empty()) throw Error("there is no example to validate on");
}

std::vector<std::int64_t> ExampleOrder::training(std::int64_t micro_step) {
  const std::vector<std::int64_t> all = sampler_.batch(plan_.update_of(micro_step));
  const auto first = all.begin() + plan_.first_row(micro_step);
  return {first, first + plan_.batch_size};
}

ExampleBatches::ExampleBatches(Examples examples, const CollateOptions& options, const BatchPlan& plan,
                               std::uint64_t seed, c10::Device device)
    : examples_(std::move(examples)),
      options_(options),
      plan_(plan),
      seed_(seed),
      device_(device),
      order_(lengths_of(examples_.train), lengths_of(examples_.val), {plan, seed}) {
  require_whole(examples_.train, options);
  require_whole(examples_.val, options);
}

ModelBatch ExampleBatches::training(std::int64_t micro_step) {
  return collate(examples_.train, order_.training(micro_step),
                 {kTrainingStream, plan_.update_of(micro_step),
                  static_cast<std::uint32_t>(plan_.first_row(micro_step))});
}

ModelBatch ExampleBatches::evaluation(Split split, std::int64_t index) {
  const bool train = split == Split::kTrain;
  return collate(train ? examples_.train : examples_.val, order_.evaluation(split, index),
                 {train ? kTrainEvaluationStream : kValEvaluationStream, index, 0});
}

ModelBatch ExampleBatches::collate(const std::vector<Example>& examples,
                                   std::span<const std::int64_t> numbers,
                                   const RandomStream::Position& place) const {
  std::vector<const Example*> rows;
  for (const std::int64_t number : numbers) rows.push_back(&examples[static_cast<std::size_t>(number)]);
  const at::Tensor ids = padded(rows, &Example::input_ids, options_.pad_id);
  at::Tensor labels = labels_of(rows, ids.sizes());
  if (options_.labels == LabelShape::kMasked) mask(ids, rows, place, labels);

  ModelBatch batch;
  const at::Tensor kept = at::zeros(ids.sizes(), at::kLong);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto length = std::ssize(rows[row]->input_ids);
    kept[static_cast<std::int64_t>(row)].slice(0, 0, length).fill_(1);
    batch.tokens += length;
  }
  batch.inputs.input_ids = ids.to(device_);
  if (batch.tokens < ids.numel()) batch.inputs.attention_mask = kept.to(device_);
  if (options_.has_segments) {
    const bool has_types = longest(rows, &Example::type_ids) > 0;
    if (has_types) batch.inputs.token_type_ids = padded(rows, &Example::type_ids, 0, ids.size(1)).to(device_);
  }
  batch.inputs.labels = labels.to(device_);
  if (options_.labels == LabelShape::kMasked) {
    point_at_labels(labels, batch);
  } else if (options_.labels <= LabelShape::kClasses) {
    batch.targets = static_cast<double>(rows.size());
  } else {
    batch.targets = labels.ne(-100).sum().item<double>();
  }
  if (options_.labels == LabelShape::kSequence) batch.tokens += static_cast<std::int64_t>(batch.targets);
  return batch;
}

at::Tensor ExampleBatches::labels_of(const std::vector<const Example*>& rows, at::IntArrayRef ids) const {
  const auto count = std::ssize(rows);
  switch (options_.labels) {
    case LabelShape::kMasked: return at::full(ids, -100, at::kLong);
    case LabelShape::kScore: {
      const at::Tensor scores = at::zeros({count});
      for (std::int64_t i = 0; i < count; ++i) scores[i] = rows[static_cast<std::size_t>(i)]->score;
      return scores;
    }
    case LabelShape::kClasses: {
      const at::Tensor classes = at::zeros({count, options_.classes});
      for (std::int64_t i = 0; i < count; ++i)
        for (const std::int64_t label : rows[static_cast<std::size_t>(i)]->labels) classes[i][label] = 1;
      return classes;
    }
    default: {
      const at::Tensor labels = padded(rows, &Example::labels, -100);
      return options_.labels == LabelShape::kNumbers && labels.size(1) == 1 ? labels.squeeze(1) : labels;
    }
  }
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
