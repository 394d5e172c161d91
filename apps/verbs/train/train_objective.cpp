#include "apps/verbs/train/train_objective.h"

#include <iterator>
#include <sstream>

#include "apps/training/parallel/own_launcher.h"
#include "data/base/environment.h"
#include "models/layers/recompute.h"
#include "models/tasks/inference_loading.h"

namespace zoo {

namespace {

// Several processes train on the CPU if "auto" leaves the choice, and on GPUs each has one.
c10::Device device_of(const TrainFlags& flags, const ParallelSession& session) {
  if (session.size() == 1) return device_of(flags.compute);
  if (flags.compute.device == "auto") return c10::kCPU;
  const c10::Device device = device_of(flags.compute);
  if (!device.is_cuda() || flags.compute.device != "cuda") return device;
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(session.local_rank())};
}

}  // namespace

std::optional<int> train_in_processes(const Arguments& arguments, const TrainFlags& flags) {
  const std::int64_t count = flags.processes.value_or(1);
  if (flags.restart > 0 && !flags.processes)
    throw UsageError("--restart is for the processes of --processes N");
  if (!flags.processes || !environment(kOwnLauncher).empty()) return std::nullopt;
  if (const Launch launch = find_launch(flags.session.place); launch.size > 1)
    throw UsageError("--processes ", count, ": ", launch.launcher,
                     " has already started this process as one of ", launch.size, "; leave --processes out");
  if (count == 1) return std::nullopt;
  std::istringstream command(arguments.command);
  std::vector<std::string> words{std::istream_iterator<std::string>(command), {}};
  words.insert(words.end(), arguments.words.begin(), arguments.words.end());
  return run_processes(words, count, flags.restart);
}

TrainerOptions trainer_options(const TrainFlags& flags, const ParallelSession& session) {
  if (flags.shard_optimizer && session.size() == 1)
    throw UsageError("--shard_optimizer divides among several ranks: --processes N starts them");
  TrainerOptions options = flags.trainer;
  options.seed = static_cast<std::uint64_t>(flags.compute.seed);
  options.updater.device = device_of(flags, session);
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
