#include "apps/training/training_fields.h"

namespace zoo {

std::vector<TrainingField> training_fields(TrainerOptions& options) {
  constexpr Resumed kMayChange = Resumed::kMayChange;
  constexpr FieldRange any;
  UpdaterOptions& updater = options.updater;
  OptimizerOptions& optimizer = updater.optimizer;
  Schedule& schedule = options.schedule;
  LocalStepsOptions& local = updater.local;
  return {
      // All micro batches of an update are drawn before its first, to count their targets.
      {"gradient_accumulation_steps", &updater.accumulation, between(1, 4096), "micro batches per update"},
      {"max_iters", &options.max_iters, at_least(0), "number of updates", kMayChange},
      {"optimizer", &optimizer.kind, any, "optimizer", Resumed::kKept, kOptimizerNames},
      {"learning_rate", &schedule.peak, above(0), "peak learning rate", kMayChange},
      {"min_lr", &schedule.floor, at_least(0),
       "learning rate at the end of the decay; default: a tenth of learning_rate, at most 0.0001",
       kMayChange},
      {"warmup_iters", &schedule.warmup_iters, at_least(0),
       "updates in which the learning rate rises to its peak", kMayChange},
      {"lr_decay_iters", &schedule.decay_iters, at_least(0),
       "update at which the decay ends; default: max_iters", kMayChange},
      {"lr_schedule", &schedule.kind, any, "how the learning rate decays after the warm-up", kMayChange,
       kScheduleNames},
      {"lr_cycles", &schedule.cycles, at_least(1),
       "linear and cosine: number of decays, each from the peak (warm restarts)", kMayChange},
      {"cooldown_iters", &schedule.cooldown_iters, at_least(0),
       "wsd, trapezoid: updates of the final decay; default: a tenth of lr_decay_iters", kMayChange},
      {"decay_lr", &schedule.decays, any,
       "false: keep learning_rate constant, without warm-up (nanoGPT's flag)", kMayChange},
      {"beta1", &optimizer.beta1, between(0, 0.999999), "AdamW and Lion: decay of the first moment"},
      {"beta2", &optimizer.beta2, between(0, 0.999999), "AdamW and Lion: decay of the second moment"},
      {"adam_eps", &optimizer.eps, above(0), "AdamW: epsilon, added to the root of the second moment"},
      {"momentum", &optimizer.momentum, between(0, 0.999999),
       "SGD and Muon: momentum; default: 0.9, for Muon 0.95"},
      {"adjust_lr_fn", &optimizer.muon_scale, any,
       "Muon: how the learning rate depends on the shape of a matrix, as in torch.optim.Muon; with "
       "match_rms_adamw AdamW's learning rates fit",
       Resumed::kKept, kMuonScaleNames},
      {"weight_decay", &optimizer.weight_decay, at_least(0), "weight decay of matrices and embeddings",
       kMayChange},
      {"weight_decay_schedule",
       &schedule.weight_decay,
       any,
       "how the weight decay falls: to 0 at lr_decay_iters, or not at all",
       kMayChange,
       {"constant", "linear", "cosine"}},
      {"cautious_weight_decay", &optimizer.cautious_weight_decay, any,
       "AdamW and Muon: weights decay only where their step does not grow them", kMayChange},
      {"grad_clip", &optimizer.grad_clip, at_least(0),
       "maximum norm of the gradient (gradient clipping); 0: no clipping", kMayChange},
      {"skip_spikes", &optimizer.skip_spikes, above(1),
       "leave out an update whose gradient's norm is more than so many times the usual, the mean of the last "
       "hundred, from the 51st update on; default: none is left out",
       kMayChange},
      {"ema_decay", &updater.ema_decay, between(0, 0.9999999),
       "decay of an exponential moving average of the weights, which is evaluated and saved in their place; "
       "0: none"},
      {"loss_scale", &updater.scaler.initial_scale, above(0),
       "float16: initial loss scale; each overflow halves it"},
      {"local_steps", &local.steps, between(0, 100000),
       "DiLoCo: each rank makes so many updates by itself, then all move the weights that they share by the "
       "mean of their changes, for slow networks; 0: average the gradients in each update"},
      {"outer_learning_rate", &local.learning_rate, above(0),
       "local_steps: factor of that mean, with momentum; 1 without momentum gives the mean of the weights"},
      {"outer_momentum", &local.momentum, between(0, 0.999999),
       "local_steps: Nesterov's momentum of that mean"},
      {"eval_interval", &options.eval_interval, at_least(1),
       "updates between evaluations, which also save a checkpoint", kMayChange},
      {"eval_iters", &options.eval_iters, between(1, 100000), "batches of each split in an evaluation",
       kMayChange},
      {"log_interval", &options.log_interval, at_least(1), "updates between lines of metrics.jsonl",
       kMayChange},
      {"layer_norms", &options.layer_norms, any,
       "log each layer's norms of gradients and weights, the share of the weights that an update changes, "
       "and the largest logit of each attention; takes as much memory as the weights",
       kMayChange},
      {"always_save_checkpoint", &options.always_save_checkpoint, any,
       "save a checkpoint at every evaluation; false: only when the validation loss is the best so far",
       kMayChange},
      {"early_stopping_patience", &options.patience, at_least(0),
       "stop after so many evaluations in a row without a better validation loss; 0: never", kMayChange},
  };
}

void require_ranges(TrainerOptions options) {
  for (const TrainingField& field : training_fields(options)) {
    std::visit(
        [&](const auto* member) {
          if constexpr (std::is_convertible_v<decltype(*member), std::optional<double>>)
            require_in(field.range, field.name, *member);
        },
        field.member);
  }
  const Schedule& schedule = options.schedule;
  if (schedule.floor && *schedule.floor > schedule.peak && schedule.decays &&
      schedule.kind != ScheduleKind::kConstant)
    throw FieldError(Field{"min_lr"}, ": ", *schedule.floor, " is above the learning_rate, ", schedule.peak);
}

}  // namespace zoo
