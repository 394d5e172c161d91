#include <algorithm>
#include <cmath>
#include <iostream>

#include "apps/command/output.h"
#include "apps/verbs/measure/limits.h"
#include "apps/verbs/train/train_parts.h"
#include "data/base/sizes.h"

namespace zoo {
namespace {

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

void apply_depth(const Flags& flags, TrainFlags& values) {
  constexpr std::int64_t kHead = 64, kTuned = 256;  // features; the width for which kRate is near the best
  constexpr double kRate = 3e-3;
  if (flags.given("recipe")) throw UsageError("--depth sets what --recipe does; leave out one of them");
  if (values.init_from != "scratch")
    throw UsageError("--depth: a checkpoint has its own sizes; leave it out");
  const std::int64_t depth = *values.depth, width = kHead * depth;
  const auto set = [&](const char* flag, auto& member, auto value) {
    if (!flags.given(flag)) member = value;
  };
  set("n_layer", values.model.n_layer, depth);
  set("n_head", values.model.n_head, depth);
  set("n_embd", values.model.n_embd, width);
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
