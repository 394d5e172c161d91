#include <filesystem>
#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/output.h"
#include "apps/training/parallel/data_parallel.h"
#include "apps/training/stop_signal.h"
#include "apps/training/trainer.h"
#include "apps/verbs/process_memory.h"
#include "apps/verbs/torch_options.h"
#include "apps/verbs/train/dry_run.h"
#include "apps/verbs/train/train_adapters.h"
#include "apps/verbs/train/train_batches.h"
#include "apps/verbs/train/train_data.h"
#include "apps/verbs/train/train_model.h"
#include "apps/verbs/train/train_objective.h"
#include "apps/verbs/train/train_options.h"
#include "apps/verbs/train/training_reporter.h"
#include "apps/verbs/verbs.h"
#include "data/base/atomic_file.h"
#include "data/base/json_file.h"
#include "models/checkpoint/checkpoint.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

struct ParsedFlags {
  TrainFlags values;
  nlohmann::json resolved;
  bool has_config = false;
};

// Empty if the flags only ask for help.
std::optional<ParsedFlags> parse(const Arguments& arguments) {
  ParsedFlags parsed;
  Flags flags(arguments.command, "Trains a model from scratch, fine-tunes a checkpoint, or resumes a run.");
  declare(flags, parsed.values);
  if (!flags.parse(arguments)) return std::nullopt;
  parsed.resolved = flags.resolved();
  parsed.has_config = flags.given("config");
  return parsed;
}

// A resumed run keeps the flags of its start; flags given again override them.
std::optional<ParsedFlags> parse_with_run_config(const Arguments& arguments) {
  auto parsed = parse(arguments);
  if (!parsed || parsed->values.init_from != "resume" || parsed->has_config) return parsed;
  const fs::path config = RunDirectory(parsed->values.out_dir, 0).config_path();
  if (!fs::exists(config))
    throw Error("--init_from resume: ", parsed->values.out_dir, " holds no run to resume");
  Arguments with_config = arguments;
  with_config.words.insert(with_config.words.end(), {"--config", config.string()});
  return parse(with_config);
}

// --init_from at the start of the run, not "resume": a resumed run without a checkpoint starts there again.
std::string origin_of(const RunDirectory& run) {
  return read_json(run.config_path()).value("init_from", std::string("scratch"));
}

// Start of the run: a folder with weights (none: from scratch), and the iteration to continue from.
struct Start {
  std::optional<fs::path> checkpoint;
  std::optional<std::int64_t> resumed;
};

Start find_start(const TrainFlags& flags, const RunDirectory& run) {
  if (flags.init_from == "resume") {
    const auto steps = run.steps();
    if (!steps.empty()) return {run.step_path(steps.back()), steps.back()};
    std::cerr << "no checkpoint in " << run.path().string() << " yet: starting at iteration 0\n";
    const std::string origin = origin_of(run);
    return origin == "scratch" ? Start{} : Start{fs::path(origin), std::nullopt};
  }
  if (run.holds_run() && !flags.overwrite) {
    throw Error("--out_dir: ", run.path(), " already holds a run; continue it with --init_from resume, ",
                "choose another directory, or replace it with --overwrite");
  }
  if (flags.init_from == "scratch") return {};
  if (!fs::is_directory(flags.init_from)) {
    throw Error("--init_from: expected scratch, resume or a checkpoint directory, got '", flags.init_from,
                "'");
  }
  return {fs::path(flags.init_from), std::nullopt};
}

Schedule schedule_of(const TrainFlags& flags) {
  const std::int64_t end = flags.lr_decay_iters.value_or(flags.max_iters);
  return {.kind = flags.decay_lr ? schedule_named(flags.lr_schedule) : ScheduleKind::kConstant,
          .peak = flags.learning_rate,
          .floor = flags.min_lr,
          .warmup_iters = flags.decay_lr ? flags.warmup_iters : 0,
          .decay_iters = end,
          .cooldown_iters = flags.cooldown_iters.value_or(end / 10),
          .cycles = flags.lr_cycles};
}

TrainerOptions trainer_options(const TrainFlags& flags) {
  TrainerOptions options;
  options.max_iters = flags.max_iters;
  options.eval_interval = flags.eval_interval;
  options.eval_iters = flags.eval_iters;
  options.log_interval = flags.log_interval;
  options.always_save_checkpoint = flags.always_save_checkpoint;
  options.patience = flags.early_stopping_patience;
  options.seed = static_cast<std::uint64_t>(flags.compute.seed);
  options.schedule = schedule_of(flags);
  options.updater = updater_options(flags);
  return options;
}

std::int64_t trained_parameters(const torch::nn::Module& module) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : module.parameters())
    count += parameter.requires_grad() ? parameter.numel() : 0;
  return count;
}

// The shape decides the special tokens of the texts.
Shape shape_of(const TrainFlags& flags, const Start& start) {
  return start.checkpoint ? read_checkpoint_config(*start.checkpoint).config.shape
                          : family_of(flags).base.shape;
}

void write_run_config(const RunDirectory& run, nlohmann::json resolved) {
  if (resolved["init_from"] == "resume") resolved["init_from"] = origin_of(run);
  write_json(run.config_path(), resolved);
}

void discard_old_run(const RunDirectory& run) {
  for (const char* part : {"checkpoints", "best", "final", "metrics.jsonl", "loss.png", "tensorboard"}) {
    fs::remove_all(run.path() / part);
  }
}

void prepare_run(const TrainFlags& flags, const RunDirectory& run, const nlohmann::json& resolved) {
  make_directories(run.path());
  run.clean();
  if (flags.init_from != "resume") discard_old_run(run);
  write_run_config(run, resolved);
}

int report(const Trainer::Result& result, const RunDirectory& run) {
  const std::string folder = run.path().string();
  if (!result.finished) {
    std::cerr << "stopped after iteration " << result.iterations
              << "; continue with: tzoo train --init_from resume"
              << " --out_dir " << folder << "\n";
    return 128 + StopSignal::received();
  }
  std::cout << "validation loss " << result.final_val_loss << " after " << result.iterations
            << " iterations (best " << std::min(result.best_val_loss, result.final_val_loss) << ")\n"
            << "model in " << (run.path() / "final").string() << "\n";
  return 0;
}

// Observer for ranks other than 0: prints nothing, stops on a signal.
class SilentObserver : public TrainingObserver {
 public:
  bool stop() override { return StopSignal::received() != 0; }
};

int train(Trainer& trainer, const Model& model, const TrainerOptions& options, const RunDirectory& run) {
  const StopSignal signals;
  if (options.ranks != nullptr && options.ranks->rank() > 0) {
    SilentObserver silent;
    return trainer.train(silent).finished ? 0 : 128 + StopSignal::received();
  }
  const std::int64_t all = model.parameter_count(), trained = trained_parameters(model);
  std::cerr << "number of parameters: " << human_count(all);
  if (trained < all) std::cerr << "; trained: " << human_count(trained);
  std::cerr << "\n";
  TrainingReporter reporter(options.max_iters, run.metrics_path(), run.path() / "loss.png");
  const Trainer::Result result = trainer.train(reporter);
  reporter.draw();
  return report(result, run);
}

}  // namespace

int run_train(const Arguments& arguments) {
  const auto parsed = parse_with_run_config(arguments);
  if (!parsed) return 0;
  const TrainFlags& flags = parsed->values;
  apply_threads(flags.compute);
  keep_freed_memory();

  const ParallelSession session;
  RunDirectory run(flags.out_dir, flags.keep_checkpoints);
  const Start start = find_start(flags, run);
  TrainerOptions options = trainer_options(flags);
  const c10::Device device = options.updater.device;
  if (session.size() > 1 && !device.is_cpu())
    throw Error("--device: several processes can train on the CPU only");
  TaskData data =
      read_task_data(flags.data, shape_of(flags, start), known_model(start.checkpoint, flags.data.kind()));
  const LoadedModel loaded = make_model(flags, start.checkpoint, data, device);
  if (start.resumed && *start.resumed > options.max_iters) {
    throw Error("--max_iters ", options.max_iters, ": the run is already at iteration ", *start.resumed);
  }
  const auto batches = make_batches(flags.data, data, loaded.model->config(), batch_plan(flags, session),
                                    options.seed, device);
  const auto adapters = adapt(flags, start.checkpoint, loaded);
  const auto objective = make_objective(flags, loaded, data, *batches, adapters);
  if (flags.dry_run) return dry_run(*objective, options.updater);
  const auto ranks = session.ranks_for(*loaded.model);
  options.ranks = ranks.get();
  if (session.rank() == 0) prepare_run(flags, run, parsed->resolved);

  const Savers save = savers(loaded, data.tokenizer, adapters);
  options.save_step = save.step;
  Trainer trainer(*objective, run, save.whole, options);
  if (start.resumed) trainer.resume(*start.resumed);
  return train(trainer, *loaded.model, options, run);
}

}  // namespace zoo
