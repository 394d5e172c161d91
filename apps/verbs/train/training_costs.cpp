#include <algorithm>
#include <cmath>
#include <iostream>

#include "apps/command/output.h"
#include "apps/compute/compute.h"
#include "apps/training/optimizers/muon.h"
#include "apps/verbs/measure/limits.h"
#include "apps/verbs/train/train_parts.h"
#include "data/base/process_memory.h"
#include "data/base/sizes.h"
#include "models/inference/frozen_weights.h"

namespace zoo {
namespace {

constexpr int kTimedUpdates = 3;  // the first is slower: memory is new

struct Needs {
  std::int64_t parameters = 0, trained = 0, weights = 0, gradients = 0, optimizer = 0, average = 0;
  std::int64_t sum() const { return weights + gradients + optimizer + average; }
};

// Number of tensors that an optimizer keeps per weight; Adafactor's row and column means are negligible.
std::int64_t memories(OptimizerKind kind, bool hidden_matrix) {
  if (kind == OptimizerKind::kAdafactor) return 0;
  return kind == OptimizerKind::kAdamW || (kind == OptimizerKind::kMuon && !hidden_matrix) ? 2 : 1;
}

Needs needs_of(torch::nn::Module& module, const UpdaterOptions& options) {
  Needs needs;
  const auto hidden = hidden_matrices(module);
  for (const auto& entry : module.named_parameters()) {
    const at::Tensor& parameter = entry.value();
    const auto bytes = static_cast<std::int64_t>(parameter.nbytes());
    needs.parameters += parameter.numel();
    // Of a packed projection the parameter has only the shape.
    needs.weights += std::min(bytes, static_cast<std::int64_t>(parameter.storage().nbytes()));
    if (!parameter.requires_grad()) continue;
    needs.trained += parameter.numel();
    needs.gradients += bytes / (options.shard >= Shard::kGradients ? options.optimizer_shares : 1);
    needs.optimizer +=
        bytes * memories(options.optimizer.kind, hidden.contains(entry.key())) / options.optimizer_shares;
  }
  needs.weights += inference::frozen_bytes(module);
  const std::int64_t one = needs.trained * static_cast<std::int64_t>(sizeof(float));  // on each rank
  if (options.ema_decay > 0) needs.average = one;
  if (options.local.steps > 0) needs.average = 3 * one;  // common weights, momentum, differences
  return needs;
}

std::string megabytes(std::int64_t bytes) { return with_separators((bytes + (1 << 19)) >> 20) + " MiB"; }

// On a GPU nothing is known.
void require_memory(const Needs& needs, const UpdaterOptions& options) {
  const std::int64_t available = available_memory(),
                     more = needs.sum() - needs.weights;  // the weights are there
  if (!options.device.is_cpu() || available < 0 || more <= available) return;
  throw Error("gradients, optimizer and average need ", megabytes(more),
              " of memory besides the weights; available: ", megabytes(available),
              "; take a smaller model, --lora_rank or --optimizer adafactor");
}

// Operations of a training's products: two for each weight and token in the forward pass, and those of
// attention, of which a causal one sees half; the backward pass has twice as many.
double operations(const Model& model, double tokens, std::int64_t length) {
  const TransformerConfig& config = model.config();
  std::int64_t weights = model.parameter_count();
  if (!config.tie_word_embeddings) weights -= config.vocab_size * config.hidden_size;
  if (config.has_position_table()) weights -= config.max_positions * config.hidden_size;
  const std::int64_t attention = config.num_layers * config.hidden_size * length;
  return 6 * tokens * static_cast<double>(weights + attention);
}

}  // namespace

void check_memory(Objective& objective, const UpdaterOptions& options, std::int64_t activations, bool says) {
  const Needs needs = needs_of(objective.module(), options);
  require_memory(needs, options);
  if (says)
    std::cerr << "weights, gradients and optimizer take " << megabytes(needs.sum()) << ", activations about "
              << megabytes(activations) << "\n";
  const std::int64_t available = available_memory(), more = needs.sum() - needs.weights + activations;
  if (!options.device.is_cpu() || available < 0 || more <= available) return;
  std::cerr << "warning: an update needs about " << megabytes(more)
            << " of memory besides the weights; available: " << megabytes(available)
            << "; if the run is killed, take a smaller --batch_size with more "
            << "--gradient_accumulation_steps, or --activation_checkpointing (--dry_run measures)\n";
}

int dry_run(Objective& objective, const UpdaterOptions& options, std::int64_t updates) {
  const Needs needs = needs_of(objective.module(), options);
  const std::int64_t available = available_memory();
  const bool on_cpu = options.device.is_cpu();
  require_memory(needs, options);
  Table table({{""}, number("")});
  table.row({"parameters", with_separators(needs.parameters)});
  if (needs.trained < needs.parameters) table.row({"  of which trained", with_separators(needs.trained)});
  table.row({"weights", megabytes(needs.weights)});
  table.row({"gradients", megabytes(needs.gradients)});
  table.row({"optimizer", megabytes(needs.optimizer)});
  if (needs.average > 0)
    table.row({options.local.steps > 0 ? "outer update" : "average", megabytes(needs.average)});

  Updater updater(objective, options, nullptr);
  double fastest = 0;
  std::int64_t tokens = 0;
  for (int i = 0; i < kTimedUpdates; ++i) {
    const double seconds = seconds_of([&] {
      updater.run(i, /*learning_rate=*/0, [] { return false; });
      updater.optimizer().gradient_norm().item<float>();  // synchronizes with a GPU
    });
    fastest = i == 0 ? seconds : std::min(fastest, seconds);
    tokens = updater.tokens();
  }
  const std::int64_t peak = peak_memory();
  if (on_cpu && peak >= 0) table.row({"whole process, measured", megabytes(peak)});
  if (on_cpu && available >= 0) table.row({"available on this machine", megabytes(available)});
  table.row({"time of an update", std::to_string(static_cast<std::int64_t>(1e6 * fastest) / 1000) + " ms"});
  table.row({"time of " + with_separators(updates) + " updates",
             clock_time(std::llround(fastest * static_cast<double>(updates)))});
  table.row(
      {"tokens a second", with_separators(static_cast<std::int64_t>(static_cast<double>(tokens) / fastest))});
  table.print(std::cout);
  return 0;
}

void apply_depth(const Flags& flags, TrainFlags& values) {
  constexpr std::int64_t kHead = 64, kTuned = 256;  // features; the width for which kRate is near the best
  constexpr double kRate = 3e-3;
  if (flags.given("recipe")) throw UsageError("--depth sets what --recipe does; leave out one of them");
  if (values.init_from != "scratch")
    throw UsageError("--depth: a checkpoint has its own sizes; leave it out");
  const std::int64_t depth = *values.depth;
  const auto set = [&](const char* flag, auto& member, auto value) {
    if (!flags.given(flag)) member = value;
  };
  set("n_layer", values.model.n_layer, depth);
  set("n_head", values.model.n_head, depth);
  set("n_embd", values.model.n_embd, kHead * depth);
  const std::int64_t width = values.model.n_embd;
  if (!flags.given("model_type")) {
    values.model.model_type = "qwen3";
    // Three matrices of this size have the weights of the usual two of 4 n_embd.
    set("n_inner", values.model.n_inner, (8 * width / 3 + 31) / 32 * 32);
  }
  set("block_size", values.data.block_size, 256);
  TrainerOptions& trainer = values.trainer;
  set("optimizer", trainer.updater.optimizer.kind, OptimizerKind::kMuon);
  set("learning_rate", trainer.schedule.peak,
      kRate * std::sqrt(static_cast<double>(kTuned) / static_cast<double>(width)));
  set("min_lr", trainer.schedule.floor, trainer.schedule.peak / 30);
  if (!flags.given("max_iters")) set("tokens_per_parameter", values.tokens_per_parameter, 20.0);
}

std::int64_t updates_of(const TrainFlags& flags, const TaskData& data, const Model& model,
                        const ParallelSession& session) {
  if (!data.tokens)
    throw UsageError("--tokens_per_parameter: ", data.source, " is read as examples of different lengths");
  const UpdaterOptions& updater = flags.trainer.updater;
  const auto number = [](std::int64_t count) { return static_cast<double>(count); };  // no product overflows
  const double tokens = number(flags.batch_size) * number(updater.accumulation) * number(session.size()) *
                        number(flags.data.block_size);
  const double round = number(std::max<std::int64_t>(1, updater.local.steps));
  const double wanted = *flags.tokens_per_parameter * number(model.parameter_count());
  const double updates = round * std::ceil(wanted / tokens / round);
  if (updates > number(kLargestGivenCount))
    throw UsageError("--tokens_per_parameter ", *flags.tokens_per_parameter, ": ", updates,
                     " updates are too many");
  if (session.rank() == 0)
    std::cerr << with_separators(static_cast<std::int64_t>(updates)) << " updates read "
              << *flags.tokens_per_parameter << " tokens for each of "
              << with_separators(model.parameter_count()) << " parameters\n";
  return static_cast<std::int64_t>(updates);
}

std::int64_t trained_parameters(const torch::nn::Module& module) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : module.parameters())
    count += parameter.requires_grad() ? parameter.numel() : 0;
  return count;
}

void print_cost(const Trainer::Result& result, const Model& model, std::int64_t length, bool on_cpu) {
  constexpr double kLongRun = 20;  // seconds: measuring the processor takes a quarter of one
  if (result.seconds < kLongRun) return;
  const auto tokens = static_cast<double>(result.tokens);
  std::cerr << "trained on " << human_count(result.tokens) << " tokens in "
            << clock_time(std::llround(result.seconds))
            << format_text(", %.0f a second", tokens / result.seconds);
  if (model.config().shape == Shape::kDecoder && trained_parameters(model) == model.parameter_count()) {
    const double done = operations(model, tokens, length), rate = done / result.seconds;
    std::cerr << format_text(": %.2g operations, %.1f Gflop/s", done, rate / 1e9);
    if (on_cpu)
      std::cerr << format_text(", %.0f %% of what the float32 units do at most",
                               100 * rate / product_rate(kernels::WeightType::kFloat32));
  }
  std::cerr << "\n";
}

}  // namespace zoo
