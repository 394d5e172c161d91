#include <algorithm>
#include <cmath>
#include <sstream>

#include "apps/command/arguments.h"
#include "apps/command/output.h"
#include "apps/plots/figures.h"
#include "apps/verbs/train/train_parts.h"
#include "models/generation/generate.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

TrainingReporter::TrainingReporter(std::int64_t max_iters, const RunDirectory& run, TextSamples samples)
    : progress_(max_iters, "iterations"),
      metrics_(run.metrics_path()),
      plot_(run.path() / "loss.png"),
      samples_(std::move(samples)),
      max_iters_(max_iters) {}

void TrainingReporter::on_iteration(std::int64_t done) {
  progress_.update(done, status_);
  if (samples_.interval == 0 || done == 0 || done % samples_.interval != 0) return;
  progress_.aside("sampling");
  progress_.print("sample after " + std::to_string(done) + " iterations:");
  std::istringstream lines(samples_.text());
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) progress_.print("  " + line);
  progress_.aside(status_);
}

void TrainingReporter::on_metrics(const Metrics& m) {
  const std::string iteration = "iter " + std::to_string(m.iter) + ": ";
  const std::string loss = m.train_loss ? format_text("loss %.4f", *m.train_loss) : "nothing to predict";
  status_ = loss + format_text("  lr %.1e  %.0f tok/s", m.lr, m.tokens_per_second);
  // Not of the first update, which is slower.
  const bool says_time = ms_per_iter_ > 0 && !std::exchange(has_said_time_, true);
  ms_per_iter_ = m.ms_per_iter;
  if (const std::int64_t skipped = m.skipped.value_or(0); skipped > std::exchange(skipped_, skipped))
    progress_.print(iteration + std::to_string(skipped) +
                    " updates left out so far, for their gradient's norm (--skip_spikes)");
  if (progress_.on_terminal()) return;
  std::string waits;  // for the slowest rank
  if (!m.wait_ms.empty()) {
    const auto [least, most] = std::ranges::minmax_element(m.wait_ms);
    waits = format_text(", %.2fms waiting for rank ", *most) + std::to_string(least - m.wait_ms.begin());
  }
  progress_.print(iteration + loss + format_text(", time %.2fms", m.ms_per_iter) + waits +
                  (says_time ? time_left(m.iter) : ""));
}

std::string TrainingReporter::time_left(std::int64_t iteration) const {
  const double seconds = ms_per_iter_ / 1000 * static_cast<double>(max_iters_ - iteration);
  return seconds > 0 ? ", " + clock_time(std::llround(std::ceil(seconds))) + " left" : "";
}

void TrainingReporter::on_evaluation(const Evaluation& e) {
  std::string line = "step " + std::to_string(e.iter) +
                     format_text(": train loss %.4f, val loss %.4f", e.train_loss, e.val_loss);
  for (const auto& [name, value] : e.val_scores) {
    if (name == "rewards_accuracies") line += format_text(", %.1f %% chosen", 100 * value);
    if (name == "bits_per_byte") line += format_text(" (%.4f bits per byte)", value);
  }
  // The bar of a terminal shows it itself.
  progress_.print(line + (progress_.on_terminal() ? "" : time_left(e.iter)));
  if (e.iter > 0) draw();
}

void TrainingReporter::draw() {
  if (!can_draw_) return;
  try {
    plot_loss(metrics_, plot_);
  } catch (const Error& error) {
    can_draw_ = false;
    progress_.print(std::string("warning: ") + error.what());
  }
}

TextSamples text_samples(const TrainFlags& flags, Model& model, std::shared_ptr<const Tokenizer> tokenizer) {
  if (flags.sample_interval == 0) return {};
  if (flags.data.task != Task::kLm || model.config().shape != Shape::kDecoder)
    throw UsageError("--sample_interval: only a model of --task lm continues a text");
  if (!tokenizer)
    throw UsageError("--sample_interval: ", flags.data.dataset, " has no tokenizer for its text");
  const TokenIds prompt = tokenizer->encode(flags.sample_prompt.value_or("\n"));
  if (prompt.empty()) throw UsageError("--sample_prompt: expected a text of at least one token");
  const auto text = [&model, prompt, tokenizer] {
    const at::NoGradGuard no_grad;
    GenerationOptions options{.max_new_tokens = 80, .sampling = {.temperature = 0.8}};
    options.interrupted = [] { return StopSignal::received() != 0; };
    TokenIds ids = prompt;
    const GenerationResult result = generate(model, {prompt}, options);
    ids.insert(ids.end(), result.ids.front().begin(), result.ids.front().end());
    return replace_invalid_utf8(tokenizer->decode(ids));
  };
  return {.interval = flags.sample_interval, .text = text};
}

}  // namespace zoo
