#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "apps/command/progress.h"
#include "apps/training/distillation_loss.h"
#include "apps/training/lora.h"
#include "apps/training/model_objective.h"
#include "apps/training/parallel/data_parallel.h"
#include "apps/training/stop_signal.h"
#include "apps/training/trainer.h"
#include "apps/training/updater.h"
#include "apps/verbs/train/train_data.h"
#include "apps/verbs/train/train_options.h"
#include "models/checkpoint/checkpoint.h"
#include "models/model.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

// The steps of `tzoo train` between data and trainer; `tzoo evaluate` and `tzoo bench train` share some.

/// Starts the processes of --processes and returns their exit status; empty in such a process, and for one.
/// Throws UsageError if another launcher has started this one, and for what does not fit --local_steps.
std::optional<int> train_in_processes(const Arguments& arguments, const TrainFlags& flags);

/// Meets the other ranks, if a launcher has started any, and calls `body`. All ranks end with its exception.
int train_as_rank(const TrainFlags& flags, const std::function<int(const ParallelSession&)>& body);

/// Throws UsageError if shard_optimizer has no ranks.
TrainerOptions trainer_options(const TrainFlags& flags, const ParallelSession& session);

BatchPlan batch_plan(const TrainFlags& flags, const ParallelSession& session);

/// Throws Error if the data does not fill a batch.
std::unique_ptr<Batches> make_batches(const DataFlags& flags, TaskData& data, const TransformerConfig& config,
                                      const BatchPlan& plan, std::uint64_t seed, c10::Device device);

std::unique_ptr<ModelObjective> make_objective(const TrainFlags& flags, const LoadedModel& loaded,
                                               const TaskData& data, const BatchPlan& plan, Batches& batches);

/// The family of --model_type, or the task's default.
const Family& family_of(const TrainFlags& flags);

/// Tokenizer of a checkpoint, and the labels of its head if it fits this task. Empty without a checkpoint.
KnownModel known_model(const std::optional<CheckpointConfig>& checkpoint, Task task);

/// What a checkpoint decides, as values of the flags for the model and the tokenizer.
nlohmann::json flags_of(const CheckpointConfig& checkpoint, const KnownModel& known);

/// Throws Error naming the flags of `given` whose values are not those of flags_of(). A tokenizer may also be
/// named by the checkpoint's directory.
void require_equal(const nlohmann::json& given, const nlohmann::json& own,
                   const std::filesystem::path& checkpoint);

/// The model to train: from the checkpoint, with a new head if it has none for the task, or from scratch.
/// Throws Error naming what does not match the data.
LoadedModel make_model(const TrainFlags& flags, const std::optional<CheckpointConfig>& checkpoint,
                       const TaskData& data, c10::Device device);

/// Sets what --depth N chooses and no flag gives: a decoder of N layers as wide as N heads of 64 features,
/// its optimizer and rates, and 20 tokens per parameter. Throws UsageError beside a recipe or a checkpoint.
void apply_depth(const Flags& flags, TrainFlags& values);

/// The updates of --tokens_per_parameter, in whole rounds of local steps; says them on rank 0. Throws
/// UsageError for data of examples, and for more than there may be.
std::int64_t updates_of(const TrainFlags& flags, const TaskData& data, const Model& model,
                        const ParallelSession& session);

std::int64_t trained_parameters(const torch::nn::Module& module);

/// Says what a run of more than some seconds took: tokens, time and, of a decoder with rows of `length`
/// tokens, operations and their share of what the processor can do.
void print_cost(const Trainer::Result& result, const Model& model, std::int64_t length, bool on_cpu);

struct Savers {
  Trainer::SaveModel whole;  // with its adapters merged, or only the adapters if its projections are packed
  Trainer::SaveModel step;   // for resuming, if that differs
  std::vector<std::string> unknown;  // what the checkpoint's directory has that they do not write
};

/// They also write what a checkpoint's directory has beside the weights; of `data` the tokenizer and the chat
/// template, and what `more`, if it is not null, writes into the directory. `adapters` may be null.
Savers savers(const LoadedModel& loaded, const std::optional<CheckpointConfig>& checkpoint,
              const TaskData& data, std::shared_ptr<LoraAdapters> adapters,
              const Trainer::SaveModel& more = nullptr);

/// For an --init_from that is the directory of an adapter: sets --lora_rank and the others that it decides.
/// Throws UsageError for given ones that differ, Error for an adapter that training cannot go on with.
void take_adapter(const Flags& flags, TrainFlags& values);

/// The directory of an adapter's model; empty for no adapter. Throws Error if the model is not here.
std::string base_of_adapter(const std::filesystem::path& directory);

/// The adapters in the checkpoint of a resumed run; none for a new run and one without adapters. The metadata
/// kAdaptedBase is the path of the model that they adapt, or empty.
std::optional<SafetensorsFile> saved_adapters(const TrainFlags& flags, const CheckpointConfig& checkpoint);
inline constexpr const char* kAdaptedBase = "base";
/// fingerprint_of_weights() of that model where a step has the adapters alone.
inline constexpr const char* kAdaptedWeights = "weights";

/// Freezes what --freeze names and, with --lora_rank, everything except adapters and a new head. Returns the
/// adapters, loaded from the checkpoint of a resumed run; null without --lora_rank.
std::shared_ptr<LoraAdapters> adapt(const TrainFlags& flags,
                                    const std::optional<CheckpointConfig>& checkpoint,
                                    const LoadedModel& loaded);

/// Throws Error naming every flag whose value differs from the one that the run was started with, except
/// those of how long, how fast and where a run goes on. Both are objects of Flags::resolved().
void require_same_run(const std::filesystem::path& run, const nlohmann::json& started,
                      const nlohmann::json& now);

std::string fingerprint_of_weights(const std::filesystem::path& model);

/// Throws Error naming the flag if the checkpoint was trained on other data, or by another teacher. `sha256`
/// is TaskData::sha256, followed by a teacher's fingerprint. Checkpoints of older versions do not tell.
void require_same_data(const std::filesystem::path& checkpoint, const TrainFlags& flags,
                       const std::string& sha256);

/// The micro batches of each rank with which an update has as many rows as before, although another number of
/// ranks goes on from the checkpoint. Throws Error if there is none, or if the loss would be another one.
std::int64_t equal_accumulation(const std::filesystem::path& checkpoint, const TrainFlags& flags,
                                std::int64_t ranks);

/// Throws Error if memory lacks for gradients, optimizer and average besides the weights. Warns on standard
/// error if `activations`, an estimate in bytes, are too much beside them; prints all there if `says`.
void check_memory(Objective& objective, const UpdaterOptions& options, std::int64_t activations, bool says);

/// Prints the memory that training needs, and memory and time of an update, measured on a few that are
/// discarded. Throws Error as check_memory(). Returns 0.
int dry_run(Objective& objective, const UpdaterOptions& options, std::int64_t updates);

/// Texts that a model generates while it learns.
struct TextSamples {
  std::int64_t interval = 0;  // iterations between two texts; 0: none
  std::function<std::string()> text;
};

/// Ctrl-C, SIGTERM and SIGHUP end the training (see StopSignal); prints nothing, as ranks other than 0.
class SilentObserver : public TrainingObserver {
 public:
  bool stop() override { return StopSignal::received() != 0; }
};

/// Shows training progress: a bar on a terminal, nanoGPT's lines in a pipe, loss.png at each evaluation.
class TrainingReporter : public SilentObserver {
 public:
  TrainingReporter(std::int64_t max_iters, const RunDirectory& run, TextSamples samples);

  void on_iteration(std::int64_t done) override;
  void on_evaluation_step(std::int64_t done, std::int64_t all) override {
    progress_.aside("evaluating " + std::to_string(done) + "/" + std::to_string(all));
  }
  void on_metrics(const Metrics& metrics) override;
  void on_evaluation(const Evaluation& evaluation) override;
  void on_checkpoint(const std::filesystem::path& path) override {
    if (!progress_.on_terminal()) progress_.print("saving checkpoint to " + path.string());
  }

  void clear() { progress_.clear(); }

  /// Draws loss.png; if it cannot, prints the reason once.
  void draw();

 private:
  std::string time_left(std::int64_t iteration) const;

  Progress progress_;
  std::filesystem::path metrics_, plot_;
  TextSamples samples_;
  std::string status_;
  std::int64_t max_iters_, skipped_ = 0;
  double ms_per_iter_ = 0;
  bool has_said_time_ = false, can_draw_ = true;
};

/// The texts of --sample_interval and --sample_prompt; both must outlive them. They draw from generators of
/// their own: a run with samples learns as without. Throws UsageError for a task without a text to continue.
TextSamples text_samples(const TrainFlags& flags, Model& model, std::shared_ptr<const Tokenizer> tokenizer);

/// The language model of --teacher: as modules on the student's device, or packed weights and GGUF files on
/// the CPU. Throws Error naming the directory of one with another vocabulary or tokenizer, or shorter inputs.
Teacher load_teacher(const TrainFlags& flags, const LoadedModel& student, const TaskData& data);

/// --teacher_file, of rank 1 with ".rank1" and so on; null without it. Throws Error as TeacherFile does.
std::shared_ptr<TeacherFile> open_teacher_file(const TrainFlags& flags, std::int64_t rank);

/// The teacher of an embedding model, which reads texts as the verbs embed and rank do.
struct TextTeacher {
  using Texts = std::vector<std::string>;
  bool scores_pairs = false;  // a cross-encoder
  /// Vectors [Q + M, D] of queries and documents; of a cross-encoder the logits [M] of as many pairs.
  std::function<at::Tensor(const Texts& queries, const Texts& documents)> answers;
};
/// Throws Error for a model that is neither.
TextTeacher load_text_teacher(const TrainFlags& flags);

}  // namespace zoo
