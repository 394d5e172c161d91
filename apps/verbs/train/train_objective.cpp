#include <algorithm>

#include "apps/compute/compute.h"
#include "apps/training/batches/block_batches.h"
#include "apps/training/batches/packed_batches.h"
#include "apps/training/parallel/launchers.h"
#include "apps/verbs/train/train_parts.h"
#include "data/base/environment.h"
#include "data/base/field_error.h"
#include "data/base/lines.h"
#include "data/base/process_memory.h"
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

MaskingOptions masking_of(const DataFlags& flags, const Tokenizer& tokenizer) {
  MaskingOptions masking = flags.masking;
  masking.mask_id = *tokenizer.special_id(SpecialToken::mask);
  masking.vocab_size = tokenizer.vocab_size();
  return masking;
}

void require_packable(const TransformerConfig& config) {
  if (config.attention != AttentionKind::kFull || config.rope_scaling.depends_on_length() ||
      config.router_loss)
    throw UsageError("--documents pack: not for models with ",
                     config.router_loss                         ? "experts whose load a loss balances"
                     : config.attention != AttentionKind::kFull ? "sparse or linear attention"
                                                                : "rope_scaling that depends on the length");
}

void require_local_steps_fit(const TrainFlags& flags) {
  const LocalStepsOptions& local = flags.trainer.updater.local;
  if (local.steps == 0 && local != LocalStepsOptions())
    throw UsageError("--outer_learning_rate, --outer_momentum: only with --local_steps");
  if (local.steps > 0 && flags.sample_interval % local.steps != 0)
    throw UsageError("--sample_interval ", flags.sample_interval, ": expected a multiple of --local_steps ",
                     local.steps);
  if (local.steps > 0 && flags.shards() != Shard::kNone)
    throw UsageError(flags.shard == Shard::kNone ? "--shard_optimizer" : "--shard",
                     ": not with --local_steps, where each rank has weights and an optimizer of its own");
  require_rounds(flags.trainer);
}

// With which the other ranks end: as main() would print it.
RankEnd end_of(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  const bool is_usage = dynamic_cast<const UsageError*>(known) || dynamic_cast<const UnfitField*>(known);
  return {known != nullptr ? flag_message(*known) : plain_message(error), is_usage ? 2 : EXIT_FAILURE};
}

TokenId end_of_documents(const TaskData& data) {
  if (!data.tokenizer || !data.tokenizer->eos_id())
    throw UsageError("--documents pack: ", data.source,
                     " has no tokenizer with a token that ends a document");
  return *data.tokenizer->eos_id();
}

}  // namespace

std::optional<int> train_in_processes(const Arguments& arguments, const TrainFlags& flags) {
  require_local_steps_fit(flags);
  const std::int64_t count = flags.processes.value_or(1);
  if (flags.restart > 0 && !flags.processes)
    throw UsageError("--restart is for the processes of --processes N");
  if (!flags.processes || !environment(kOwnLauncher).empty()) return std::nullopt;
  if (const Launch launch = find_launch(flags.session.place); launch.size > 1)
    throw UsageError("--processes ", count, ": ", launch.launcher,
                     " has already started this process as one of ", launch.size, "; leave --processes out");
  if (count == 1) return std::nullopt;
  std::vector<std::string> words = split_words(arguments.command);
  words.insert(words.end(), arguments.words.begin(), arguments.words.end());
  return run_processes(words, count, flags.restart);
}

int train_as_rank(const TrainFlags& flags, const std::function<int(const ParallelSession&)>& body) {
  apply_threads(flags.compute);
  if (flags.shards() < Shard::kGradients) keep_freed_memory();
  const ParallelSession session(flags.session);
  return session.run([&] { return body(session); }, end_of);
}

TrainerOptions trainer_options(const TrainFlags& flags, const ParallelSession& session) {
  // A run of several ranks may go on in one.
  if (flags.shards() != Shard::kNone && session.size() == 1 && flags.init_from != "resume")
    throw UsageError(flags.shard == Shard::kNone ? "--shard_optimizer" : "--shard",
                     " divides among several ranks: --processes N starts them");
  TrainerOptions options = flags.trainer;
  options.seed = static_cast<std::uint64_t>(flags.compute.seed);
  options.updater.device = device_of(flags, session);
  options.updater.dtype = dtype_of(flags.compute);
  options.updater.shard = flags.shards();
  if (flags.shards() != Shard::kNone) options.updater.optimizer_shares = session.size();
  require_fit_of_shards(options.updater, options.layer_norms);
  return options;
}

BatchPlan batch_plan(const TrainFlags& flags, const ParallelSession& session) {
  return {.batch_size = flags.batch_size,
          .accumulation = flags.trainer.updater.accumulation,
          .rank = session.rank(),
          .ranks = session.size()};
}

std::unique_ptr<Batches> make_batches(const DataFlags& flags, TaskData& data, const TransformerConfig& config,
                                      const BatchPlan& plan, std::uint64_t seed, c10::Device device) {
  const Task task = flags.task;
  if (traits_of(task).tunes)
    throw Error("the task ", name_of(task),
                " is measured while it is trained, by tzoo train alone; see metrics.jsonl");
  const bool packs = flags.documents == "pack";
  if (packs) require_packable(config);
  if (task == Task::kLm && packs)
    return std::make_unique<PackedBatches>(*data.tokens, end_of_documents(data), flags.block_size, plan, seed,
                                           device, begin_of_documents(*data.tokenizer));
  if (task == Task::kChat && packs)
    return std::make_unique<PackedBatches>(std::move(data.examples), flags.block_size, plan, seed, device);
  if (task == Task::kLm)
    return std::make_unique<LanguageModelBatches>(*data.tokens, flags.block_size, plan, seed, device);
  const Tokenizer& tokenizer = *data.tokenizer;
  if (task == Task::kSpanCorruption) {
    SpanCorruptionOptions spans = flags.spans;
    spans.sentinels = sentinels_of(tokenizer);
    spans.eos_id = *tokenizer.eos_id();
    return std::make_unique<SpanCorruptionBatches>(*data.tokens, flags.block_size, spans, plan, seed, device);
  }
  if (data.tokens) {
    return std::make_unique<MaskedBlockBatches>(
        *data.tokens,
        MaskedBlockBatches::Options{
            .block_size = flags.block_size,
            .ends = {tokenizer.special_id(SpecialToken::cls), tokenizer.special_id(SpecialToken::sep)},
            .masking = masking_of(flags, tokenizer),
            .begins_word = word_beginnings(tokenizer)},
        plan, seed, device);
  }
  CollateOptions options{.pad_id = std::max<std::int64_t>(0, config.pad_token_id),
                         .classes = std::ssize(data.label_names),
                         .has_segments = config.type_vocab_size > 0 && tokenizer.limits().gives_segments};
  if (task == Task::kTokenClassification || task == Task::kChat) options.labels = LabelShape::kTokens;
  if (data.problem_type == ProblemType::kRegression) options.labels = LabelShape::kScore;
  if (data.problem_type == ProblemType::kMultiLabel) options.labels = LabelShape::kClasses;
  if (task == Task::kSeq2Seq) options.labels = LabelShape::kSequence;
  if (task == Task::kSeq2Seq && config.shifted_labels == ShiftedLabels::kLastLabel)
    throw Error("the labels of a model of the mbart family end in the id of a language, which the task ",
                name_of(task), " does not write");
  if (task == Task::kMlm) {
    options.labels = LabelShape::kMasked;
    options.masking = masking_of(flags, tokenizer);
  }
  return std::make_unique<ExampleBatches>(std::move(data.examples), options, plan, seed, device);
}

std::unique_ptr<ModelObjective> make_objective(const TrainFlags& flags, const LoadedModel& loaded,
                                               const TaskData& data, const BatchPlan& plan,
                                               Batches& batches) {
  LossOptions loss = data.loss;
  if (loss.class_weights.defined())
    loss.class_weights = loss.class_weights.to(loaded.model->parameters().front().device());
  auto objective = std::make_unique<ModelObjective>(
      loaded.model, batches,
      make_metric(flags.data.task, data.label_names, data.bytes_per_token, data.problem_type),
      std::move(loss));
  if (flags.disagreement != Disagreement::kNone)
    objective->penalize(flags.disagreement, flags.disagreement_weight);
  if (!flags.teacher.empty())
    objective->distill({flags.distillation, load_teacher(flags, loaded, data),
                        flags.dry_run ? nullptr : open_teacher_file(flags, plan.rank)});
  return objective;
}

}  // namespace zoo
