#include "apps/training/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>

#include "apps/training/mixed_precision.h"
#include "apps/training/training_fields.h"
#include "data/base/atomic_file.h"
#include "data/base/field_error.h"
#include "data/random/random_stream.h"

namespace zoo {
// Measures the time of iterations, excluding the time between pause() and go_on().
class Trainer::Clock {
 public:
  Clock() { go_on(); }
  void pause() { elapsed_ += seconds() - started_; }
  void go_on() { started_ = seconds(); }
  void count(std::int64_t tokens) {
    ++iterations_;
    tokens_ += tokens;
  }
  /// Of all iterations, after lap().
  double all_seconds() const { return all_seconds_; }

  struct Lap {
    double ms_per_iteration = 0, tokens_per_second = 0;
  };
  /// Time since the last call; the previous lap if no iteration has ended since.
  Lap lap() {
    pause();
    if (iterations_ > 0 && elapsed_ > 0)
      lap_ = {1000 * elapsed_ / static_cast<double>(iterations_), static_cast<double>(tokens_) / elapsed_};
    iterations_ = tokens_ = 0;
    all_seconds_ += std::exchange(elapsed_, 0);
    go_on();
    return lap_;
  }

 private:
  static double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  double started_ = 0, elapsed_ = 0, all_seconds_ = 0;
  std::int64_t iterations_ = 0, tokens_ = 0;
  Lap lap_;
};

// Writes the run's records: metrics log and TensorBoard events. Those of a resumed run are opened by their
// first line: a run that had finished keeps its last one.
class Trainer::Record {
 public:
  Record(const RunDirectory& run, std::int64_t first_iteration) : run_(run), first_(first_iteration) {
    if (first_ == 0) open();
  }

  void write(const Metrics& metrics) {
    if (!log_) open();
    log_->write(metrics);
    events_->write(metrics);
  }

  /// Writes the line of a run's end, unless nothing was trained and the file has it.
  void write_end(const Metrics& metrics) {
    if (log_ || metrics.iter > first_ || !has_line(run_.metrics_path(), metrics.iter)) write(metrics);
  }

 private:
  void open() {
    log_.emplace(run_.metrics_path(), first_);
    events_.emplace(run_.path() / "tensorboard", first_);
  }

  const RunDirectory& run_;
  std::int64_t first_;
  std::optional<MetricsLog> log_;
  std::optional<EventFile> events_;
};

double mean_loss(double sum, double targets) {
  if (targets == 0)
    throw FieldError("nothing to predict in an evaluation; more ", Field{"eval_iters"}, " or texts may help");
  return sum / targets;
}

SplitEvaluation evaluate_split(Objective& objective, Split split, std::int64_t batches,
                               const UpdaterOptions& precision,
                               const std::function<void(std::int64_t)>& on_step, Ranks* ranks) {
  const at::NoGradGuard no_grad;
  objective.module().eval();
  const auto totals = objective.totals();
  Ranks* const together = part_weights() != nullptr ? ranks : nullptr;  // they compute each block together
  if (!totals || together != nullptr) ranks = nullptr;
  const std::int64_t step = ranks != nullptr ? ranks->size() : 1, own = ranks != nullptr ? ranks->rank() : 0;
  const std::int64_t count = std::min(batches, objective.evaluation_batches(split));
  // Of each batch its loss times its targets, and these.
  at::Tensor losses = at::zeros({count}, at::TensorOptions(precision.device).dtype(at::kDouble));
  at::Tensor targets = at::zeros({count}, at::kDouble);
  for (std::int64_t first = 0; first < count; first += step) {
    const std::int64_t i = first + own;
    if (const Batch batch = i < count ? objective.evaluation(split, i) : Batch{.targets = 0};
        batch.targets > 0) {
      const AutocastScope autocast(precision.dtype, precision.device);
      losses[i] = batch.loss().to(at::kDouble) * batch.targets;
      targets[i] = batch.targets;
    }
    on_step(std::min(first + step, count));
  }
  losses = losses.cpu();
  if (ranks != nullptr) {
    for (double* total : *totals) *total = ranks->sum(*total);
    for (const at::Tensor& part : {losses, targets}) ranks->add(part);
  }
  if (together != nullptr) together->broadcast(losses, 0);  // by which all decide what is best
  const auto sum = [](const at::Tensor& x) {
    return std::accumulate(x.const_data_ptr<double>(), x.const_data_ptr<double>() + x.numel(), 0.0);
  };
  SplitEvaluation evaluation{.loss = mean_loss(sum(losses), sum(targets))};
  evaluation.scores = objective.take_scores(evaluation.loss);
  return evaluation;
}

void require_rounds(const TrainerOptions& options) {
  const std::int64_t steps = options.updater.local.steps;
  if (steps == 0) return;
  for (const auto& [name, interval] :
       {std::pair("max_iters", options.max_iters), {"eval_interval", options.eval_interval}})
    if (interval % steps != 0)
      throw UnfitField(Field{name}, " ", interval, ": expected a multiple of ", Field{"local_steps"}, " ",
                       steps, ", because ranks have common weights to evaluate only at the end of a round");
  const char* unfit = options.updater.optimizer_shares > 1 ? "shard_optimizer" : "ema_decay";
  if (options.updater.optimizer_shares > 1 || options.updater.ema_decay > 0)
    throw UnfitField(Field{unfit}, ": not with ", Field{"local_steps"},
                     ", where each rank has weights and an optimizer of its own");
}

void require_fit_of_shards(const UpdaterOptions& options, bool layer_norms) {
  if (options.optimizer_shares == 1 || options.shard <= Shard::kOptimizer) return;
  const std::string& what = kShardNames[static_cast<std::size_t>(options.shard)];
  const auto refuse = [&](const char* field, const char* reason) {
    throw UnfitField(Field{field}, ": not with ", Field{"shard"}, " ", what, ", ", reason);
  };
  if (!options.device.is_cpu()) refuse("device", "which is for CPUs");
  if (options.dtype == at::kHalf) refuse("dtype", "whose gradients have no scale; take bfloat16");
  if (layer_norms) refuse("layer_norms", "with which no rank has all gradients");
  if (options.shard == Shard::kWeights && options.ema_decay > 0)
    refuse("ema_decay", "with which no rank has all weights");
}

Trainer::Trainer(Objective& objective, RunDirectory run, SaveModel save_model, const TrainerOptions& options)
    : objective_(objective),
      run_(std::move(run)),
      save_model_(std::move(save_model)),
      options_(options),
      updater_(objective, options.updater, options.ranks) {
  require_ranges(options_);
  require_rounds(options_);
  require_fit_of_shards(options_.updater, options_.layer_norms);
  if (!options_.schedule.decay_iters) options_.schedule.decay_iters = options_.max_iters;
  seed_generators(options_.seed, options_.updater.device);
}

void Trainer::resume(std::int64_t iteration) {
  const std::filesystem::path directory = run_.step_path(iteration);
  state_ = read_trainer_state(directory);
  if (state_.iteration != iteration)
    throw Error(directory, ": trainer_state.json says iteration ", state_.iteration, ", expected ",
                iteration);
  if (state_.micro_steps < 0 || state_.micro_steps >= options_.updater.accumulation)
    throw Error(directory, ": trainer_state.json says micro_steps ", state_.micro_steps, ", of ",
                options_.updater.accumulation);
  updater_.load(directory, iteration, state_.micro_steps);
  load_generators(directory, options_.updater.device);
  is_split_ = state_.micro_steps > 0;
}

Trainer::Result Trainer::train(TrainingObserver& observer) {
  std::optional<Record> record;
  if (writes()) {
    make_directories(run_.path());
    record.emplace(run_, state_.iteration);
  }
  Clock clock;
  const auto gives_up = [&] {
    return options_.patience > 0 && state_.stale_evaluations >= options_.patience;
  };
  observer.on_iteration(state_.iteration);
  for (std::int64_t iteration = state_.iteration; iteration <= options_.max_iters; ++iteration) {
    const bool last = iteration == options_.max_iters;
    // A resumed run that had given up ends with its evaluation.
    const bool evaluates = iteration % options_.eval_interval == 0 || last || gives_up();
    if (evaluates) {
      clock.pause();
      try {
        evaluate(iteration, observer);
      } catch (const Stopped&) {
        return stop_at(iteration, observer);
      }
      clock.go_on();
    }
    if (last || gives_up()) return finish(iteration, record ? &*record : nullptr, clock, observer);

    if (!writes()) seed_rank(iteration);
    const bool logs = iteration % options_.log_interval == 0 || evaluates;
    const bool measures = logs && options_.layer_norms;
    std::vector<LayerNorms> layers;
    std::vector<double> maxima;
    if (measures && record) {
      clock.pause();
      objective_.module().eval();
      const AutocastScope autocast(options_.updater.dtype, options_.updater.device);
      maxima = objective_.attention_logit_maxima(iteration * options_.updater.accumulation);
      clock.go_on();
    }
    const auto outcome = updater_.run(
        iteration, options_.schedule.at(iteration), [&] { return observer.stop(); },
        options_.schedule.weight_decay_share(iteration), measures ? &layers : nullptr);
    if (outcome == Updater::Outcome::kInterrupted) return stop_at(iteration, observer);
    clock.count(updater_.tokens());
    tokens_ += updater_.tokens() * (options_.ranks != nullptr ? options_.ranks->size() : 1);
    if (logs) {
      Metrics now = metrics(iteration, last_loss(), clock);
      now.layers = std::move(layers);
      now.attention_logit_maxima = std::move(maxima);
      now.train_scores = objective_.take_training_scores();
      if (std::exchange(is_split_, false)) now.train_scores.clear();
      if (evaluates) now.val_loss = last_evaluation_.val_loss;
      if (evaluates) now.val_scores = last_evaluation_.val_scores;
      if (record) record->write(now);
      observer.on_metrics(now);
    }
    clock.pause();
    observer.on_iteration(iteration + 1);
    clock.go_on();
    if (stopped(observer)) return stop_at(iteration + 1, observer);
  }
  throw FieldError(Field{"max_iters"}, " ", options_.max_iters, ": the run is at iteration ",
                   state_.iteration, " already");
}

// Each rank draws its own dropout. A checkpoint holds only rank 0's generators, so the other ranks seed
// theirs by the iteration.
void Trainer::seed_rank(std::int64_t iteration) const {
  const PhiloxCounter place = {static_cast<std::uint32_t>(options_.ranks->rank()), 0,
                               static_cast<std::uint32_t>(iteration),
                               static_cast<std::uint32_t>(iteration >> 32)};
  const PhiloxCounter bits = philox4x32_10(place, philox_key(options_.seed));
  seed_generators(std::uint64_t{bits[1]} << 32 | bits[0], options_.updater.device);
}

Trainer::Result Trainer::stop_at(std::int64_t iteration, TrainingObserver& observer) {
  checkpoint(iteration, observer);
  return {.finished = false, .iterations = iteration, .best_val_loss = state_.best_val_loss};
}

Trainer::Result Trainer::finish(std::int64_t iteration, Record* record, Clock& clock,
                                TrainingObserver& observer) {
  // No batch follows: the last row has the loss of the last update's. A run without an update has none.
  Metrics end =
      metrics(iteration, iteration > state_.iteration ? last_loss() : last_evaluation_.train_loss, clock);
  end.val_loss = last_evaluation_.val_loss;
  end.val_scores = last_evaluation_.val_scores;
  const Shards::Whole whole(updater_.shards());
  if (record != nullptr) {
    record->write_end(end);
    const AverageScope average(updater_.average());
    run_.write_final(save_model_);
    observer.on_checkpoint(run_.path() / "final");
  }
  return {.finished = true,
          .early = iteration < options_.max_iters,
          .iterations = iteration,
          .best_val_loss = state_.best_val_loss,
          .final_val_loss = last_evaluation_.val_loss,
          .tokens = tokens_,
          .seconds = clock.all_seconds()};
}

bool Trainer::stopped(TrainingObserver& observer) const {
  const bool stop = observer.stop();
  return options_.ranks != nullptr ? options_.ranks->any_before(stop) : stop;
}

std::optional<double> Trainer::last_loss() const {
  if (!updater_.loss().defined() && options_.updater.local.steps == 0) return std::nullopt;
  const double loss = updater_.loss().defined() ? updater_.loss().item<double>() : 0;
  // Each rank's loss is already weighted by the targets of all ranks, times the number of ranks.
  const double mean = options_.ranks != nullptr
                          ? options_.ranks->sum(loss) / static_cast<double>(options_.ranks->size())
                          : loss;
  if (!std::isfinite(mean) && updater_.scaler() == nullptr)
    throw FieldError("the loss is ", mean, "; what has been saved is whole (a lower ", Field{"learning_rate"},
                     " may help)");
  return mean;
}

void Trainer::evaluate(std::int64_t iteration, TrainingObserver& observer) {
  evaluate_weights(iteration, observer);
  const bool due = iteration == options_.max_iters ||
                   (iteration > 0 && (options_.always_save_checkpoint || last_evaluation_.best));
  if (due && iteration != state_.iteration) checkpoint(iteration, observer);
}

void Trainer::evaluate_weights(std::int64_t iteration, TrainingObserver& observer) {
  const AverageScope average(updater_.average());
  const auto batches = [&](Split split) {
    return std::min(options_.eval_iters, objective_.evaluation_batches(split));
  };
  const std::int64_t of_train = batches(Split::kTrain), all = of_train + batches(Split::kVal);
  const auto evaluated = [&](Split split) {
    return evaluate_split(
        objective_, split, options_.eval_iters, options_.updater,
        [&](std::int64_t done) {
          observer.on_evaluation_step(split == Split::kTrain ? done : of_train + done, all);
          if (stopped(observer)) throw Stopped();
        },
        options_.ranks);
  };
  const double train_loss = evaluated(Split::kTrain).loss;
  const auto [val_loss, val_scores] = evaluated(Split::kVal);
  if (!std::isfinite(val_loss))
    throw FieldError("the validation loss before iteration ", iteration, " is ", val_loss,
                     "; what has been saved is whole (a lower ", Field{"learning_rate"}, " may help)");
  // Do not save untrained weights as the best.
  const bool best = val_loss < state_.best_val_loss && iteration > 0;
  last_evaluation_ = {iteration, train_loss, val_loss, val_scores, best};
  if (best) {
    state_.best_val_loss = val_loss;
    const Shards::Whole whole(updater_.shards());
    if (writes()) run_.write_best(save_model_);
  }
  // A resumed run repeats the evaluation of its checkpoint's iteration, which may already be counted.
  if (iteration > state_.counted_evaluation)
    state_.stale_evaluations = best ? 0 : state_.stale_evaluations + 1;
  state_.counted_evaluation = std::max(state_.counted_evaluation, iteration);
  observer.on_evaluation(last_evaluation_);
}

void Trainer::checkpoint(std::int64_t iteration, TrainingObserver& observer) {
  if (!writes()) {  // each may have a part
    { const Shards::Whole whole(updater_.shards()); }
    return updater_.send_state(updater_.state(iteration));
  }
  const std::int64_t ranks = options_.ranks != nullptr ? options_.ranks->size() : 1;
  run_.write_step(iteration, [&](const std::filesystem::path& directory) {
    {
      const Shards::Whole whole(updater_.shards());
      const AverageScope common(updater_.common());
      (options_.save_step ? options_.save_step : save_model_)(directory);
    }
    updater_.save(directory, updater_.state(iteration));
    save_generators(directory, options_.updater.device);
    TrainerState now = state_;
    now.iteration = iteration;
    now.micro_steps = updater_.micro_steps();
    now.micro_batches = options_.updater.accumulation * ranks;
    now.tokens = all_tokens();
    now.data_sha256 = options_.data_sha256;
    write_trainer_state(directory, now);
  });
  observer.on_checkpoint(run_.step_path(iteration));
}

Metrics Trainer::metrics(std::int64_t iteration, std::optional<double> loss, Clock& clock) const {
  const Clock::Lap lap = clock.lap();
  Metrics now{.iter = iteration,
              .train_loss = loss,
              .lr = options_.schedule.at(iteration),
              .ms_per_iter = lap.ms_per_iteration,
              .tokens_per_second = lap.tokens_per_second,
              .tokens = all_tokens()};
  if (options_.ranks != nullptr) {
    now.tokens_per_second *= static_cast<double>(options_.ranks->size());
    for (const double seconds : options_.ranks->take_waits()) now.wait_ms.push_back(1000 * seconds);
  }
  const at::Tensor& norm = updater_.optimizer().gradient_norm();
  if (norm.defined()) now.grad_norm = norm.item<double>();
  if (const at::Tensor& skipped = updater_.optimizer().skipped(); skipped.defined())
    now.skipped = skipped.item<std::int64_t>();
  if (updater_.scaler() != nullptr) now.loss_scale = updater_.scaler()->scale();
  return now;
}

}  // namespace zoo
