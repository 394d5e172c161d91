#include "apps/verbs/train/train_objective.h"

#include "models/layers/recompute.h"
#include "models/tasks/inference_loading.h"

namespace zoo {

TrainerOptions trainer_options(const TrainFlags& flags, const ParallelSession& session) {
  if (flags.shard_optimizer && session.size() == 1)
    throw UsageError("--shard_optimizer divides among several ranks: mpirun -np N tzoo train ...");
  TrainerOptions options = flags.trainer;
  options.seed = static_cast<std::uint64_t>(flags.compute.seed);
  // Several processes train on the CPU, where "auto" leaves the choice.
  options.updater.device = session.size() > 1 && flags.compute.device == "auto" ? c10::Device(c10::kCPU)
                                                                                : device_of(flags.compute);
  options.updater.dtype = dtype_of(flags.compute);
  if (flags.shard_optimizer) options.updater.optimizer_shares = session.size();
  return options;
}

BatchPlan batch_plan(const TrainFlags& flags, const ParallelSession& session) {
  return {.batch_size = flags.batch_size,
          .accumulation = flags.trainer.updater.accumulation,
          .rank = session.rank(),
          .ranks = session.size()};
}

std::unique_ptr<ModelObjective> make_objective(const TrainFlags& flags, const LoadedModel& loaded,
                                               const TaskData& data, Batches& batches) {
  recompute_blocks(*loaded.model, flags.activation_checkpointing);
  LossOptions loss = data.loss;
  if (loss.class_weights.defined())
    loss.class_weights = loss.class_weights.to(loaded.model->parameters().front().device());
  auto objective = std::make_unique<ModelObjective>(
      loaded.model, batches, make_metric(flags.data.task, data.label_names, data.bytes_per_token),
      std::move(loss));
  if (flags.disagreement != Disagreement::kNone)
    objective->penalize(flags.disagreement, flags.disagreement_weight);
  return objective;
}

}  // namespace zoo
