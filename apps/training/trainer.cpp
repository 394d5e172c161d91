#include "apps/training/trainer.h"

#include <chrono>
#include <cmath>
#include <limits>

#include "apps/training/precision.h"
#include "apps/training/trainer_state.h"
#include "data/base/error.h"

namespace zoo {

// The time that iterations take, without what lies between pause() and go_on().
class Trainer::Clock {
 public:
  Clock() { go_on(); }
  void pause() { elapsed_ += seconds() - started_; }
  void go_on() { started_ = seconds(); }
  void count() { ++iterations_; }

  /// Mean milliseconds since the last call.
  double lap() {
    pause();
    const double mean = iterations_ > 0 ? 1000 * elapsed_ / static_cast<double>(iterations_) : 0;
    iterations_ = 0;
    elapsed_ = 0;
    go_on();
    return mean;
  }

 private:
  static double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  double started_ = 0, elapsed_ = 0;
  std::int64_t iterations_ = 0;
};

Trainer::Trainer(std::shared_ptr<Model> model, Batches& batches, RunDirectory run, SaveModel save_model,
                 const TrainerOptions& options)
    : model_(std::move(model)),
      disagreement_(model_, options.disagreement, options.disagreement_weight),
      batches_(batches),
      run_(std::move(run)),
      save_model_(std::move(save_model)),
      options_(options),
      optimizer_(*model_, options.adamw),
      best_val_loss_(std::numeric_limits<double>::infinity()) {
  seed_generators(options_.seed, options_.device);
}

void Trainer::resume(std::int64_t iteration) {
  const std::filesystem::path directory = run_.step_path(iteration);
  const TrainerState state = read_trainer_state(directory);
  if (state.iteration != iteration) {
    throw Error(directory, ": trainer_state.json says iteration ", state.iteration, ", expected ", iteration);
  }
  optimizer_.load_state(SafetensorsFile(directory / kOptimizerFile));
  load_generators(directory, options_.device);
  first_iteration_ = iteration;
  best_val_loss_ = state.best_val_loss;
}

Trainer::Result Trainer::train(TrainingObserver& observer) {
  MetricsLog log(run_.metrics_path(), first_iteration_);
  Clock clock;
  for (std::int64_t iteration = first_iteration_; iteration <= options_.max_iters; ++iteration) {
    const bool last = iteration == options_.max_iters;
    const bool evaluates = iteration % options_.eval_interval == 0 || last;
    if (evaluates) {
      clock.pause();
      evaluate(iteration, observer);
      clock.go_on();
    }
    if (last) break;

    const bool logs = iteration % options_.log_interval == 0 || evaluates;
    const double loss = update(iteration, logs);
    clock.count();
    if (logs) {
      if (!std::isfinite(loss)) {
        throw Error("the loss of iteration ", iteration, " is ", loss,
                    "; the last checkpoint is whole (a lower --learning_rate may help)");
      }
      Metrics now = metrics(iteration, loss, clock);
      if (evaluates) now.val_loss = last_evaluation_.val_loss;
      log.write(now);
      observer.on_metrics(now);
    }
    observer.on_iteration(iteration + 1);
    if (observer.stop()) {
      checkpoint(iteration + 1, observer);
      return {.finished = false, .iterations = iteration + 1, .best_val_loss = best_val_loss_};
    }
  }
  // The record of the end: what the last update has come to.
  Metrics end = metrics(options_.max_iters, last_evaluation_.train_loss, clock);
  end.val_loss = last_evaluation_.val_loss;
  log.write(end);
  run_.write_final(save_model_);
  observer.on_checkpoint(run_.path() / "final");
  return {.finished = true,
          .iterations = options_.max_iters,
          .best_val_loss = best_val_loss_,
          .final_val_loss = last_evaluation_.val_loss};
}

double Trainer::update(std::int64_t iteration, bool wants_loss) {
  model_->train();
  at::Tensor sum;
  const auto steps = options_.gradient_accumulation_steps;
  for (std::int64_t step = 0; step < steps; ++step) {
    const ModelInputs batch = batches_.training(iteration * steps + step);
    at::Tensor loss;
    {
      const AutocastScope autocast(options_.dtype, options_.device);
      loss = disagreement_.forward(batch).loss;
    }
    if (steps > 1) loss = loss / steps;
    loss.backward();
    const at::Tensor detached = loss.detach();
    sum = sum.defined() ? sum + detached : detached;
  }
  optimizer_.step(options_.schedule.at(iteration));
  optimizer_.zero_grad();
  return wants_loss ? sum.item<double>() : 0;
}

void Trainer::evaluate(std::int64_t iteration, TrainingObserver& observer) {
  last_evaluation_ = {.iter = iteration,
                      .train_loss = mean_loss(Split::kTrain, observer),
                      .val_loss = mean_loss(Split::kVal, observer)};
  const double val_loss = last_evaluation_.val_loss;
  if (!std::isfinite(val_loss)) {
    throw Error("the validation loss before iteration ", iteration, " is ", val_loss,
                "; the last checkpoint is whole (a lower --learning_rate may help)");
  }
  // Weights that nothing has trained are not worth a place.
  last_evaluation_.best = val_loss < best_val_loss_ && iteration > 0;
  if (last_evaluation_.best) {
    best_val_loss_ = val_loss;
    run_.write_best(save_model_);
  }
  observer.on_evaluation(last_evaluation_);
  const bool end = iteration == options_.max_iters;
  const bool due = end || (iteration > 0 && (options_.always_save_checkpoint || last_evaluation_.best));
  if (due && iteration != first_iteration_) checkpoint(iteration, observer);
}

double Trainer::mean_loss(Split split, TrainingObserver& observer) {
  const at::NoGradGuard no_grad;
  model_->eval();
  at::Tensor sum;
  for (std::int64_t i = 0; i < options_.eval_iters; ++i) {
    const AutocastScope autocast(options_.dtype, options_.device);
    const at::Tensor loss = model_->forward(batches_.evaluation(split, i)).loss.to(at::kDouble);
    sum = sum.defined() ? sum + loss : loss;
    observer.on_evaluation_step((split == Split::kVal ? options_.eval_iters : 0) + i + 1,
                                2 * options_.eval_iters);
  }
  return sum.item<double>() / static_cast<double>(options_.eval_iters);
}

void Trainer::checkpoint(std::int64_t iteration, TrainingObserver& observer) {
  run_.write_step(iteration, [&](const std::filesystem::path& directory) {
    save_model_(directory);
    save_state(iteration, directory);
  });
  observer.on_checkpoint(run_.step_path(iteration));
}

void Trainer::save_state(std::int64_t iteration, const std::filesystem::path& directory) const {
  write_safetensors(directory / kOptimizerFile, optimizer_.state());
  save_generators(directory, options_.device);
  write_trainer_state(directory, {.iteration = iteration, .best_val_loss = best_val_loss_});
}

Metrics Trainer::metrics(std::int64_t iteration, double loss, Clock& clock) const {
  const double ms = clock.lap();
  const auto tokens = static_cast<double>(batches_.tokens_per_batch() * options_.gradient_accumulation_steps);
  Metrics now{
      .iter = iteration, .train_loss = loss, .lr = options_.schedule.at(iteration), .ms_per_iter = ms};
  now.tokens_per_second = ms > 0 ? 1000 * tokens / ms : 0;
  if (optimizer_.gradient_norm().defined()) now.grad_norm = optimizer_.gradient_norm().item<double>();
  return now;
}

}  // namespace zoo
