#pragma once

#include <memory>
#include <optional>

#include "apps/training/model_objective.h"
#include "apps/training/parallel/data_parallel.h"
#include "apps/verbs/train/train_data.h"
#include "apps/verbs/train/train_options.h"
#include "models/checkpoint/checkpoint.h"

namespace zoo {

/// Starts the processes of --processes, each with the same arguments, and returns their exit status; empty in
/// such a process, or if there is only one. Throws UsageError if another launcher has started this one, and
/// for what does not fit --local_steps.
std::optional<int> train_in_processes(const Arguments& arguments, const TrainFlags& flags);

/// The flags' options with the seed, the device, the number format and the ranks. Throws UsageError if
/// shard_optimizer has no ranks.
TrainerOptions trainer_options(const TrainFlags& flags, const ParallelSession& session);

/// How the examples of an update are split.
BatchPlan batch_plan(const TrainFlags& flags, const ParallelSession& session);

/// Makes batches of the data for this model. Throws Error if the data does not fill a batch.
std::unique_ptr<Batches> make_batches(const DataFlags& flags, TaskData& data, const TransformerConfig& config,
                                      const BatchPlan& plan, std::uint64_t seed, c10::Device device);

/// The training objective: the model on its batches, with the loss of the task and the flags.
std::unique_ptr<ModelObjective> make_objective(const TrainFlags& flags, const LoadedModel& loaded,
                                               const TaskData& data, Batches& batches);

}  // namespace zoo
