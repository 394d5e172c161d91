#include "apps/training/updater.h"

#include <algorithm>
#include <chrono>

#include <c10/util/ScopeExit.h>

#include "apps/training/records/run_directory.h"
#include "apps/training/training_fields.h"
#include "data/base/field_error.h"

namespace zoo {
namespace {

constexpr const char* kGradient = "gradient.";
constexpr const char* kLoss = "loss";

// Adds the time for which the result lives to a sum, in seconds.
auto timed(double& sum) {
  using Clock = std::chrono::steady_clock;
  return c10::make_scope_exit(
      [&sum, begin = Clock::now()] { sum += std::chrono::duration<double>(Clock::now() - begin).count(); });
}

bool is_finite(const at::Tensor& x) { return x.isfinite().all().item<bool>(); }

}  // namespace

Updater::Updater(Objective& objective, const UpdaterOptions& options, Ranks* ranks)
    : objective_(objective),
      options_(options),
      ranks_(ranks),
      optimizer_(make_optimizer(objective.module(), options.optimizer,
                                options.optimizer_shares > 1 ? averaging() : nullptr)) {
  require_ranges({.updater = options});
  if (options.optimizer_shares > 1 && options.shard > Shard::kOptimizer && averaging() != nullptr) {
    std::vector<Shards::Weight> weights;
    for (const auto& [name, parameter] : optimizer_->parameters())
      weights.push_back({parameter, optimizer_->owner(weights.size())});
    shards_ = std::make_unique<Shards>(objective.module(), std::move(weights), *ranks, options.shard);
    optimizer_->divide_gradients(shards_->apart());
  }
  if (options.dtype == at::kHalf) scaler_.emplace(options.scaler, options.device);
  if (options.ema_decay > 0) average_.emplace(objective.module(), options.ema_decay);
  if (options.local.steps > 0) local_.emplace(objective.module(), options.local, ranks);
}

double Updater::count_targets(std::int64_t iteration, std::vector<Batch>& batches) {
  const auto watch = timed(times_.data);
  double targets = 0;
  tokens_ = 0;
  for (std::int64_t step = 0; step < options_.accumulation; ++step) {
    batches.push_back(objective_.training(iteration * options_.accumulation + step));
    targets += batches.back().targets;
    tokens_ += batches.back().tokens;
  }
  return averaging() != nullptr ? averaging()->sum(targets) : targets;
}

Updater::Outcome Updater::run(std::int64_t iteration, double learning_rate, const std::function<bool()>& stop,
                              double decay_share, std::vector<LayerNorms>* layers) {
  objective_.module().train();
  times_ = {};
  std::vector<Batch> batches;
  const double targets = count_targets(iteration, batches);
  const auto ranks = static_cast<double>(averaging() != nullptr ? averaging()->size() : 1);
  if (done_ == 0) loss_ = at::Tensor();
  for (; done_ < options_.accumulation; ++done_) {
    Batch& batch = batches[static_cast<std::size_t>(done_)];
    const bool last = done_ + 1 == options_.accumulation;
    // With ranks, only an update without any target skips a batch, because the other ranks wait for it.
    if (batch.targets > 0 || (averaging() != nullptr && targets > 0))
      backward(batch, ranks * batch.targets / targets, last);
    batch.loss = nullptr;  // frees memory that is no longer needed
    // With ranks, do not stop here, because the others wait for this rank's gradients.
    if (!last && ranks_ == nullptr && stop()) {
      ++done_;
      return Outcome::kInterrupted;
    }
  }
  done_ = 0;
  // Without a loss there were no targets at all.
  const Outcome outcome =
      loss_.defined() ? apply(iteration, learning_rate, decay_share, layers) : Outcome::kSkipped;
  if (local_) local_->after_update(iteration + 1);
  return outcome;
}

void Updater::backward(const Batch& batch, double share, bool last) {
  at::Tensor loss;
  {
    const auto watch = timed(times_.forward);
    const AutocastScope autocast(options_.dtype, options_.device);
    loss = batch.loss();
  }
  const auto watch = timed(times_.backward);
  if (share == 0) {
    loss = at::where(loss.isfinite(), loss, 0.0) * 0.0;  // the mean over no targets is NaN
  } else if (share != 1) {
    loss = loss * share;
  }
  const at::Tensor part = loss.detach();
  loss_ = loss_.defined() ? loss_ + part : part;
  if (shards_ != nullptr) shards_->begin();
  else if (averaging() != nullptr) averaging()->prepare_backward(loss, last);
  (scaler_ ? scaler_->scaled(loss) : loss).backward();
  if (shards_ != nullptr) shards_->end(last);
}

Updater::Outcome Updater::apply(std::int64_t iteration, double learning_rate, double decay_share,
                                std::vector<LayerNorms>* layers) {
  const auto watch = timed(times_.optimizer);
  if (scaler_) {
    const bool good = scaler_->unscale(optimizer_->gradients());
    scaler_->adjust();
    if (!good) {
      optimizer_->zero_grad();
      return Outcome::kSkipped;
    }
  }
  std::optional<LayerMeasure> measure;
  if (layers != nullptr) measure.emplace(optimizer_->parameters());
  optimizer_->step(learning_rate, decay_share);
  // On a GPU the check waits until the loss is read; until then the optimizer keeps the weights unchanged.
  if (!options_.device.is_cuda() && !is_finite(optimizer_->gradient_norm())) report_fault(iteration);
  if (measure) *layers = measure->norms();
  optimizer_->zero_grad();
  if (average_) average_->update();
  return Outcome::kDone;
}

// What is not finite, on any rank. A non-finite weight makes all gradients non-finite, so it is named first.
std::string Updater::fault() const {
  const NamedTensors& weights = optimizer_->parameters();
  const at::Tensor faults = at::zeros({2, std::ssize(weights)});
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const at::Tensor& weight = weights[i].second;
    const at::Tensor found = faults.select(1, static_cast<std::int64_t>(i));
    const bool elsewhere = shards_ != nullptr && optimizer_->owner(i) != ranks_->rank();
    if (!elsewhere && !is_finite(weight)) found[0] += 1;
    if (weight.grad().defined() && !is_finite(weight.grad())) found[1] += 1;
  }
  if (shards_ != nullptr) ranks_->add(faults);
  for (const std::int64_t kind : {0, 1})
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (faults[kind][static_cast<std::int64_t>(i)].item<float>() > 0)
        return (kind == 0 ? "the weight '" : "the gradient of '") + weights[i].first + "'";
  if (shards_ != nullptr) return "the norm of the gradients";
  return "the norm of the gradients, of which the largest is in '" + largest_gradient() + "',";
}

void Updater::report_fault(std::int64_t iteration) const {
  const std::string fault = this->fault();
  std::string forward;
  // Ranks that take one another's weights would have to end this search together.
  const bool alone = shards_ == nullptr || !shards_->divides_weights();
  for (std::int64_t step = 0; alone && step < options_.accumulation && forward.empty(); ++step)
    forward = objective_.first_bad_tensor(iteration * options_.accumulation + step);
  if (!forward.empty()) forward = "; in the forward pass the first such tensor is '" + forward + "'";
  throw FieldError("update ", iteration, ": ", fault, " is not finite", forward, "; the loss is ",
                   loss_.item<float>(), ". What has been saved is whole (a lower ", Field{"learning_rate"},
                   " may help)");
}

std::string Updater::largest_gradient() const {
  std::string found;
  double largest = -1;
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    if (!parameter.grad().defined()) continue;
    const auto size = parameter.grad().abs().max().item<double>();
    if (size > largest) found = name;
    largest = std::max(largest, size);
  }
  return found;
}

NamedTensors Updater::state(std::int64_t done) const {
  NamedTensors state = optimizer_->state();
  const auto add = [&](const NamedTensors& more) { state.insert(state.end(), more.begin(), more.end()); };
  if (scaler_) add(scaler_->state());
  if (local_) add(local_->state(done));
  return state;
}

NamedTensors Updater::state_of(std::int64_t rank, const NamedTensors& own) const {
  NamedTensors state;
  for (const auto& [name, tensor] : own) {
    const at::Tensor copy = at::empty(tensor.sizes(), tensor.scalar_type());
    if (ranks_->rank() == rank) copy.copy_(tensor);
    ranks_->broadcast(copy, rank);
    state.emplace_back(name, copy);
  }
  return state;
}

void Updater::save(const std::filesystem::path& directory, const NamedTensors& state) const {
  write_safetensors(directory / kOptimizerFile, state);
  for (std::int64_t rank = 1; local_ && ranks_ != nullptr && rank < ranks_->size(); ++rank)
    write_safetensors(directory / optimizer_file(rank), state_of(rank, state));
  if (average_) write_safetensors(directory / kAverageFile, average_->state());
  if (done_ == 0) return;
  NamedTensors gradients;
  for (const auto& [name, parameter] : optimizer_->parameters())
    if (parameter.grad().defined()) gradients.emplace_back(kGradient + name, parameter.grad());
  if (loss_.defined()) gradients.emplace_back(kLoss, loss_);
  write_safetensors(directory / kGradientsFile, gradients);
}

void Updater::load(const std::filesystem::path& directory, std::int64_t done, std::int64_t micro_steps) {
  const bool own = local_ && ranks_ != nullptr;
  const std::int64_t ranks = own ? ranks_->size() : 1;
  if (local_ && (!std::filesystem::exists(directory / optimizer_file(ranks - 1)) ||
                 std::filesystem::exists(directory / optimizer_file(ranks))))
    throw FieldError(Field{"local_steps"}, ": ", directory, " has the state of another number of ranks than ",
                     ranks, "; go on with as many as before");
  const SafetensorsFile file(directory / optimizer_file(own ? ranks_->rank() : 0));
  file.verify();
  optimizer_->load_state(file);
  if (scaler_ && file.contains("scaler.scale")) scaler_->load_state(file);  // else of a run in another type
  if (local_) local_->load_state(file, done);
  if (average_) {
    const SafetensorsFile averages(directory / kAverageFile);
    averages.verify();
    average_->load_state(averages);
  }
  done_ = micro_steps;
  if (micro_steps == 0) return;
  const SafetensorsFile gradients(directory / kGradientsFile);
  gradients.verify();
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    if (!gradients.contains(kGradient + name)) continue;
    const at::Tensor gradient = gradients.tensor(kGradient + name);
    if (gradient.sizes() != parameter.sizes())
      throw Error(gradients.path(), ": tensor '", kGradient + name, "' has another shape than the parameter");
    parameter.mutable_grad() = gradient.to(parameter.device(), parameter.scalar_type(), false, /*copy=*/true);
  }
  if (gradients.contains(kLoss)) loss_ = gradients.tensor(kLoss).to(options_.device, at::kFloat, false, true);
}

}  // namespace zoo
