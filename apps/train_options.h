#pragma once

#include <optional>

#include "apps/command/flags.h"

namespace zoo {

/// The flags of `tzoo train`, under nanoGPT's names.
struct TrainFlags {
  std::string recipe, task = "lm", init_from = "scratch", dataset = "kjv", tokenizer = "char";
  std::filesystem::path out_dir;
  bool overwrite = false;

  std::string model_type = "gpt2", activation = "gelu_new";
  std::int64_t n_layer = 4, n_head = 4, n_embd = 128, block_size = 64;
  std::int64_t vocab_size = 2000;  // of a vocabulary learnt here
  double dropout = 0.0;
  bool bias = true;

  std::int64_t batch_size = 12, gradient_accumulation_steps = 1, max_iters = 2000;
  double learning_rate = 1e-3, min_lr = 1e-4;
  std::int64_t warmup_iters = 100;
  std::optional<std::int64_t> lr_decay_iters;
  std::string lr_schedule = "cosine";
  bool decay_lr = true;
  std::string disagreement = "none";
  double disagreement_weight = 0.1;
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0.1, grad_clip = 1.0;

  std::int64_t eval_interval = 250, eval_iters = 200, log_interval = 10, keep_checkpoints = 3;
  bool always_save_checkpoint = true;
  ComputeOptions compute;
};

/// Declares them in groups, with ranges and help.
void declare(Flags& flags, TrainFlags& values);

}  // namespace zoo
