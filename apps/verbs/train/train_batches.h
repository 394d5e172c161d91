#pragma once

#include <memory>

#include "apps/verbs/train/train_data.h"

namespace zoo {

/// Makes batches of the data for this model. Throws Error if the data does not fill a batch.
std::unique_ptr<Batches> make_batches(const DataFlags& flags, TaskData& data, const TransformerConfig& config,
                                      const BatchPlan& plan, std::uint64_t seed, c10::Device device);

}  // namespace zoo
