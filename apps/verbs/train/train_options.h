#pragma once

#include <optional>

#include "apps/command/flags.h"
#include "apps/training/disagreement_loss.h"
#include "apps/training/distillation_loss.h"
#include "apps/training/lora.h"
#include "apps/training/metrics/task_metrics.h"
#include "apps/training/parallel/data_parallel.h"
#include "apps/training/preference_losses.h"
#include "apps/training/trainer.h"
#include "data/tokens/masking.h"
#include "data/tokens/span_corruption.h"
#include "models/family.h"

namespace zoo {

struct TaskTraits {
  Head head;                // that it trains
  const char *verb, *args;  // of the command that uses the model, besides --model
  const char* dataset;      // description of a needed --dataset; null: the default will do
  /// Default of --block_size for a model that exists: its longest input, but at most this. 0: the flag's own.
  std::int64_t longest;
  bool tunes;  // needs a model that exists

  bool writes() const { return head == Head::kCausalLm || head == Head::kSeq2SeqLm; }
};
const TaskTraits& traits_of(Task task);

struct DataFlags {
  Task task = Task::kLm;
  std::string dataset = "kjv";
  std::optional<std::string> val_dataset, tokenizer;
  std::string columns;             // see FileColumns::read()
  std::int64_t vocab_size = 2000;  // of a tokenizer trained here
  std::int64_t block_size = 64;
  std::optional<std::int64_t> target_size;
  std::vector<std::string> labels;
  ProblemType problem_type = ProblemType::kByLabels;  // the model's, else single-label
  std::string source_lang, target_lang;  // of a seq2seq tokenizer that puts a language beside texts
  std::string source_prefix, class_weights = "none", documents = "stream";
  std::filesystem::path chat_template;
  double label_smoothing = 0.0;
  MaskingOptions masking;
  SpanCorruptionOptions spans;

  std::int64_t target_length() const { return target_size.value_or(block_size); }
};

/// Of --vocab_size, and what --activation can say.
inline constexpr std::int64_t kLeastVocabulary = 8;
inline const std::vector<std::string> kActivations{"gelu_new", "gelu",       "relu",       "relu2",
                                                   "silu",     "gated-gelu", "gated-silu", "gated-relu"};

/// Options of a model from scratch.
struct ModelFlags {
  std::optional<std::string> model_type, activation;
  std::int64_t n_layer = 4, n_head = 4, n_embd = 128;
  std::optional<std::int64_t> n_inner, n_kv_head, n_expert, n_expert_used;
  std::optional<double> initializer_range;
  double dropout = 0.0;
  bool bias = true;
};

/// Options of the task embedding, with the names of Sentence-Transformers.
struct EmbeddingFlags {
  std::optional<std::string> loss;  // kEmbeddingLossNames or kRankingLossNames; none: as the data asks for
  std::optional<double> scale, margin;
  bool symmetric = false;
  std::string matryoshka_dims;  // sizes with commas between them
  std::optional<std::int64_t> mini_batch_size;
  std::optional<std::string> query_prompt_name, document_prompt_name;
};

/// Flags of `tzoo train`, with nanoGPT's names.
struct TrainFlags {
  std::string init_from = "scratch";
  std::filesystem::path adapter, out_dir, teacher, teacher_file;
  bool overwrite = false, dry_run = false;
  std::optional<std::int64_t> depth;           // see apply_depth()
  std::optional<double> tokens_per_parameter;  // in place of trainer.max_iters
  std::int64_t sample_interval = 0;            // 0: no samples
  std::optional<std::string> sample_prompt;
  DataFlags data;
  ModelFlags model;
  EmbeddingFlags embedding;
  DistillationOptions distillation;  // with a teacher
  PreferenceLossOptions preference;  // with the label smoothing of `data`
  std::vector<std::string> freeze;
  LoraAdapters::Options lora{.rank = 0, .targets = {}};
  std::string weights = "float32";  // format of the projections below LoRA's adapters

  Shard shards() const { return shard == Shard::kNone && shard_optimizer ? Shard::kOptimizer : shard; }
  bool freezes_packed() const { return weights != "float32"; }

  std::int64_t batch_size = 12;
  /// With schedule and options of the updates; trainer_options() adds what --device, --dtype and --seed say.
  TrainerOptions trainer{.schedule = {.warmup_iters = 100}, .updater = {.optimizer = {.beta2 = 0.99}}};
  Disagreement disagreement = Disagreement::kNone;
  double disagreement_weight = 0.1;
  bool activation_checkpointing = false;
  bool shard_optimizer = false;  // Shard::kOptimizer
  Shard shard = Shard::kNone;
  std::optional<std::int64_t> processes;
  std::int64_t restart = 0;
  SessionOptions session;
  std::int64_t keep_checkpoints = 3;
  ComputeOptions compute;
};

void declare(Flags& flags, TrainFlags& values);

/// Declares the flags of model and training, without those for output.
void declare_training(Flags& flags, TrainFlags& values);

/// Throws UsageError for a flag of declare_data() that the task does not read.
void require_data_flags(const std::function<bool(const std::string&)>& is_given, Task task);

/// Throws UsageError for a flag that `is_chosen` but that the task, the optimizer or the schedule does not
/// read, and for others that do not go together.
void require_task_flags(const TrainFlags& flags, const std::function<bool(const std::string&)>& is_chosen);

/// The index of a name among `names`, their size for another.
std::size_t number_of(const std::string& name, const std::vector<std::string>& names);

void declare_data(Flags& flags, DataFlags& values);

/// Declares the names of a model's prompts before the texts of the task embedding.
void declare_prompt_names(Flags& flags, EmbeddingFlags& values);

}  // namespace zoo
