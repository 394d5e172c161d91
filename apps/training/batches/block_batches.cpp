#include "apps/training/batches/block_batches.h"

#include <algorithm>

#include <ATen/ops/empty.h>

#include "data/base/field_error.h"

namespace zoo {
namespace {

std::span<std::int64_t> row_of(const at::Tensor& tensor, std::int64_t row) {
  const auto width = static_cast<std::size_t>(tensor.size(1));
  return {tensor.mutable_data_ptr<std::int64_t>() + static_cast<std::size_t>(row) * width, width};
}

std::vector<TokenShare> shares(const TokenDataset& dataset, TokenFile TokenDataset::*split) {
  std::vector<TokenShare> all{{dataset.*split, dataset.weight}};
  for (const TokenDataset& other : dataset.others) all.push_back({other.*split, other.weight});
  return all;
}

// Tokens of the text in a row.
std::int64_t text_size(const MaskedBlockBatches::Options& options) {
  const std::int64_t ends = options.ends.size();
  if (options.block_size <= ends)
    throw FieldError(Field{"block_size"}, " ", options.block_size, ": expected at least ", ends + 1,
                     ", since ", ends, " tokens stand around a text");
  return options.block_size - ends;
}

}  // namespace

BlockBatches::BlockBatches(const TokenDataset& dataset, std::int64_t tokens, const BatchPlan& plan,
                           std::uint64_t seed, c10::Device device)
    : plan_(plan),
      seed_(seed),
      samplers_{RandomBlockSampler(shares(dataset, &TokenDataset::train), tokens, plan.batch_size,
                                   {seed, kTrainingStream}),
                RandomBlockSampler(shares(dataset, &TokenDataset::train), tokens, plan.batch_size,
                                   {seed, kTrainEvaluationStream}),
                RandomBlockSampler(shares(dataset, &TokenDataset::val), tokens, plan.batch_size,
                                   {seed, kValEvaluationStream})},
      device_(device) {}

ModelBatch BlockBatches::training(std::int64_t micro_step) {
  return batch({kTrainingStream, plan_.update_of(micro_step),
                static_cast<std::uint32_t>(plan_.first_row(micro_step))});
}

ModelBatch BlockBatches::evaluation(Split split, std::int64_t index) {
  return batch({split == Split::kTrain ? kTrainEvaluationStream : kValEvaluationStream, index, 0});
}

ModelBatch BlockBatches::batch(const RandomStream::Position& place) const {
  const RandomBlockSampler& sampler = samplers_[place.stream];
  const Blocks blocks{empty(sampler.block_size()), empty(sampler.block_size())};
  const auto size = static_cast<std::size_t>(blocks.inputs.numel());
  sampler.fill_rows(place.step, place.row, {blocks.inputs.mutable_data_ptr<std::int64_t>(), size},
                    {blocks.following.mutable_data_ptr<std::int64_t>(), size});
  return make(blocks, place);
}

RandomStream BlockBatches::random(RandomStream::Position place, std::int64_t row) const {
  place.row += static_cast<std::uint32_t>(row);
  return {seed_, place};
}

at::Tensor BlockBatches::empty(std::int64_t columns) const {
  return at::empty({plan_.batch_size, columns},
                   at::TensorOptions().dtype(at::kLong).pinned_memory(device_.is_cuda()));
}

ModelBatch LanguageModelBatches::make(const Blocks& blocks, const RandomStream::Position&) const {
  const std::int64_t tokens = blocks.inputs.numel();
  return {.inputs = {.input_ids = send(blocks.inputs), .targets = send(blocks.following)},
          .targets = static_cast<double>(tokens),
          .tokens = tokens};
}

MaskedBlockBatches::MaskedBlockBatches(const TokenDataset& dataset, Options options, const BatchPlan& plan,
                                       std::uint64_t seed, c10::Device device)
    : BlockBatches(dataset, text_size(options), plan, seed, device), options_(std::move(options)) {}

std::vector<std::int32_t> MaskedBlockBatches::words_of(std::span<const std::int64_t> row) const {
  std::vector<std::int32_t> words(row.size(), -1);
  const std::size_t first = options_.ends.begin ? 1 : 0, end = row.size() - (options_.ends.end ? 1 : 0);
  std::int32_t word = 0;
  for (std::size_t i = first; i < end; ++i) {
    const auto id = static_cast<std::size_t>(row[i]);
    word += options_.begins_word.empty() || options_.begins_word[id] ? 1 : 0;
    words[i] = word;
  }
  return words;
}

ModelBatch MaskedBlockBatches::make(const Blocks& blocks, const RandomStream::Position& place) const {
  const at::Tensor ids = empty(options_.block_size), labels = empty(options_.block_size);
  for (std::int64_t row = 0; row < ids.size(0); ++row) {
    const auto raw = row_of(blocks.inputs, row), whole = row_of(ids, row);
    std::copy(raw.begin(), raw.end(), whole.begin() + (options_.ends.begin ? 1 : 0));
    if (options_.ends.begin) whole.front() = *options_.ends.begin;
    if (options_.ends.end) whole.back() = *options_.ends.end;
    RandomStream stream = random(place, row);
    apply_masks(draw_masks(words_of(whole), options_.masking, stream), options_.masking.mask_id, whole,
                row_of(labels, row));
  }
  ModelBatch batch{.inputs = {.input_ids = send(ids), .labels = send(labels)}, .tokens = ids.numel()};
  point_at_labels(labels, batch);
  return batch;
}

SpanCorruptionBatches::SpanCorruptionBatches(const TokenDataset& dataset, std::int64_t block_size,
                                             SpanCorruptionOptions options, const BatchPlan& plan,
                                             std::uint64_t seed, c10::Device device)
    : BlockBatches(dataset, lengths_for_inputs(block_size, options).tokens, plan, seed, device),
      options_(std::move(options)),
      lengths_(lengths_for_inputs(block_size, options_)) {}

ModelBatch SpanCorruptionBatches::make(const Blocks& blocks, const RandomStream::Position& place) const {
  const at::Tensor ids = empty(lengths_.inputs), labels = empty(lengths_.targets);
  for (std::int64_t row = 0; row < ids.size(0); ++row) {
    RandomStream stream = random(place, row);
    const NoiseSpans spans = draw_noise_spans(lengths_, stream);
    const CorruptedText text = corrupt_spans(row_of(blocks.inputs, row), spans, options_);
    std::copy(text.inputs.begin(), text.inputs.end(), row_of(ids, row).begin());
    std::copy(text.targets.begin(), text.targets.end(), row_of(labels, row).begin());
  }
  return {.inputs = {.input_ids = send(ids), .labels = send(labels)},
          .targets = static_cast<double>(labels.numel()),
          .tokens = ids.numel() + labels.numel()};
}

void point_at_labels(const at::Tensor& labels, ModelBatch& batch) {
  const at::Tensor positions = labels.flatten().ne(-100).nonzero().flatten();
  batch.targets = static_cast<double>(positions.size(0));
  // The mean loss over zero labels is NaN; the trainer skips a batch without labels.
  batch.inputs.label_positions = positions.to(batch.inputs.labels.device(), /*non_blocking=*/true);
}

}  // namespace zoo
