#include "apps/verbs/train/train_objective.h"

#include "apps/verbs/torch_options.h"
#include "models/layers/recompute.h"

namespace zoo {

UpdaterOptions updater_options(const TrainFlags& flags) {
  UpdaterOptions options;
  options.accumulation = flags.gradient_accumulation_steps;
  options.device = device_of(flags.compute);
  options.dtype = dtype_of(flags.compute);
  options.scaler.initial_scale = flags.loss_scale;
  options.ema_decay = flags.ema_decay;
  options.optimizer = {.kind = optimizer_named(flags.optimizer),
                       .beta1 = flags.beta1,
                       .beta2 = flags.beta2,
                       .eps = flags.adam_eps,
                       .momentum = flags.momentum,
                       .weight_decay = flags.weight_decay,
                       .grad_clip = flags.grad_clip};
  return options;
}

BatchPlan batch_plan(const TrainFlags& flags, const ParallelSession& session) {
  return {.batch_size = flags.batch_size,
          .accumulation = flags.gradient_accumulation_steps,
          .rank = session.rank(),
          .ranks = session.size()};
}

std::unique_ptr<ModelObjective> make_objective(const TrainFlags& flags, const LoadedModel& loaded,
                                               const TaskData& data, Batches& batches,
                                               std::shared_ptr<LoraAdapters> adapters) {
  recompute_blocks(*loaded.model, flags.activation_checkpointing);
  LossOptions loss = data.loss;
  if (loss.class_weights.defined()) loss.class_weights = loss.class_weights.to(device_of(flags.compute));
  auto objective = std::make_unique<ModelObjective>(
      loaded.model, batches, make_meter(flags.data.kind(), data.label_names), std::move(loss));
  if (const auto kind = disagreement_named(flags.disagreement))
    objective->penalize(*kind, flags.disagreement_weight);
  objective->adapt(std::move(adapters));
  return objective;
}

}  // namespace zoo
