#include "apps/training/batches.h"

#include <ATen/ops/empty.h>

namespace zoo {
namespace {

// Streams of the sampler's generator.
constexpr std::uint32_t kTrainingStream = 0, kTrainEvaluationStream = 1, kValEvaluationStream = 2;

}  // namespace

LanguageModelBatches::LanguageModelBatches(const TokenDataset& dataset, const BlockShape& shape,
                                           std::uint64_t seed, c10::Device device)
    : shape_(shape),
      training_(dataset.train, shape.block_size, shape.batch_size, {seed, kTrainingStream}),
      train_evaluation_(dataset.train, shape.block_size, shape.batch_size, {seed, kTrainEvaluationStream}),
      val_evaluation_(dataset.val, shape.block_size, shape.batch_size, {seed, kValEvaluationStream}),
      device_(device) {}

ModelInputs LanguageModelBatches::training(std::int64_t micro_step) {
  return batch(training_, micro_step);
}

ModelInputs LanguageModelBatches::evaluation(Split split, std::int64_t index) {
  return batch(split == Split::kTrain ? train_evaluation_ : val_evaluation_, index);
}

ModelInputs LanguageModelBatches::batch(const RandomBlockSampler& sampler, std::int64_t step) const {
  const auto options = at::TensorOptions().dtype(at::kLong).pinned_memory(device_.is_cuda());
  const at::Tensor inputs = at::empty({shape_.batch_size, shape_.block_size}, options);
  const at::Tensor targets = at::empty_like(inputs);
  const auto size = static_cast<std::size_t>(inputs.numel());
  sampler.fill(step, {inputs.mutable_data_ptr<std::int64_t>(), size},
               {targets.mutable_data_ptr<std::int64_t>(), size});
  ModelInputs batch;
  batch.input_ids = inputs.to(device_, /*non_blocking=*/true);
  batch.targets = targets.to(device_, /*non_blocking=*/true);
  return batch;
}

}  // namespace zoo
