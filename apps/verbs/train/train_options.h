#pragma once

#include <optional>

#include "apps/command/flags.h"
#include "apps/training/metrics/meters.h"

namespace zoo {

/// Data of a task and how to read it.
struct DataFlags {
  std::string task = "lm", dataset = "kjv";
  std::optional<std::string> val_dataset, tokenizer;
  std::int64_t vocab_size = 2000;  // of a tokenizer trained here
  std::int64_t block_size = 64;
  std::optional<std::int64_t> target_size;
  std::vector<std::string> labels;
  std::string source_prefix, class_weights = "none";
  double mlm_probability = 0.15, noise_density = 0.15, mean_noise_span_length = 3.0, label_smoothing = 0.0;
  bool whole_word = false;

  Task kind() const { return task_named(task); }
  std::int64_t target_length() const { return target_size.value_or(block_size); }
};

/// Options of a model from scratch.
struct ModelFlags {
  std::optional<std::string> model_type, activation;
  std::int64_t n_layer = 4, n_head = 4, n_embd = 128;
  std::optional<std::int64_t> n_inner, n_kv_head;
  std::optional<double> initializer_range;
  double dropout = 0.0;
  bool bias = true;
};

/// Flags of `tzoo train`, with nanoGPT's names.
struct TrainFlags {
  std::string init_from = "scratch";
  std::filesystem::path out_dir;
  bool overwrite = false;
  DataFlags data;
  ModelFlags model;

  std::int64_t batch_size = 12, gradient_accumulation_steps = 1, max_iters = 2000;
  std::string optimizer = "adamw";
  double learning_rate = 1e-3, min_lr = 1e-4;
  std::int64_t warmup_iters = 100, lr_cycles = 1;
  std::optional<std::int64_t> lr_decay_iters, cooldown_iters;
  std::string lr_schedule = "cosine";
  bool decay_lr = true;
  std::string disagreement = "none";
  double disagreement_weight = 0.1;
  double beta1 = 0.9, beta2 = 0.99, adam_eps = 1e-8, momentum = 0.9, weight_decay = 0.1, grad_clip = 1.0;
  bool activation_checkpointing = false, dry_run = false;
  std::vector<std::string> freeze, lora_targets;
  std::int64_t lora_rank = 0;
  double lora_alpha = 16;
  double ema_decay = 0.0, loss_scale = 65536.0;

  std::int64_t eval_interval = 250, eval_iters = 200, log_interval = 10, keep_checkpoints = 3;
  std::int64_t early_stopping_patience = 0;
  bool always_save_checkpoint = true;
  ComputeOptions compute;
};

/// Declares the flags in groups, with ranges and help.
void declare(Flags& flags, TrainFlags& values);

/// Declares the flags of model and training, without those for output.
void declare_training(Flags& flags, TrainFlags& values);

/// Declares only the flags of the data.
void declare_data(Flags& flags, DataFlags& values);

}  // namespace zoo
