#include <filesystem>
#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/output.h"
#include "apps/command/tokenizer_choice.h"
#include "apps/torch_options.h"
#include "apps/train_options.h"
#include "apps/training/stop_signal.h"
#include "apps/training_reporter.h"
#include "apps/verbs.h"
#include "data/base/atomic_file.h"
#include "data/base/json_file.h"
#include "data/corpora.h"
#include "data/text_file.h"
#include "models/io/checkpoint.h"
#include "models/registry.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

struct ParsedFlags {
  TrainFlags values;
  nlohmann::json resolved;
  bool has_config = false;
};

// Nothing if the flags asked for help only.
std::optional<ParsedFlags> parse(const Arguments& arguments) {
  ParsedFlags parsed;
  Flags flags(arguments.command,
              "Trains a model, from scratch, from a checkpoint, or on from where a run has stopped.");
  declare(flags, parsed.values);
  if (!flags.parse(arguments)) return std::nullopt;
  parsed.resolved = flags.resolved();
  parsed.has_config = flags.given("config");
  return parsed;
}

// A resumed run keeps the flags that it was started with, but for those that are given anew.
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

// What --init_from was when the run began, not that it was resumed: a run without a checkpoint begins so
// again.
std::string origin_of(const RunDirectory& run) {
  return read_json(run.config_path()).value("init_from", std::string("scratch"));
}

// Where the run begins: a folder with weights (none: from scratch), and the iteration to go on from.
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
    throw Error("--out_dir: ", run.path(), " holds a run already; go on with it by --init_from resume, ",
                "choose another folder, or replace it with --overwrite");
  }
  if (flags.init_from == "scratch") return {};
  if (!fs::is_directory(flags.init_from)) {
    throw Error("--init_from: expected scratch, resume or a checkpoint folder, got '", flags.init_from, "'");
  }
  return {fs::path(flags.init_from), std::nullopt};
}

struct Data {
  std::shared_ptr<const Tokenizer> tokenizer;  // empty for token files without one
  TokenDataset dataset;
};

Data read_token_folder(const fs::path& folder, const Start& start) {
  Data data{nullptr, load_token_dataset(folder)};
  const fs::path source = start.checkpoint && has_tokenizer(*start.checkpoint) ? *start.checkpoint : folder;
  if (has_tokenizer(source)) data.tokenizer = load_tokenizer(source);
  return data;
}

Data read_data(const TrainFlags& flags, const Start& start) {
  if (is_token_dataset(flags.dataset)) return read_token_folder(flags.dataset, start);
  const std::string text = read_text(resolve_dataset(flags.dataset));
  std::shared_ptr<const Tokenizer> tokenizer;
  if (start.checkpoint && has_tokenizer(*start.checkpoint)) {
    tokenizer = load_tokenizer(*start.checkpoint);
  } else {
    tokenizer = choose_tokenizer(flags.tokenizer, text, flags.vocab_size);
  }
  return {tokenizer, tokenize_dataset(text, *tokenizer)};
}

TransformerConfig config_of(const TrainFlags& flags, const Family& family, std::int64_t vocab_size) {
  // Through the family's own reader, which knows what its names mean.
  const nlohmann::json json{{"vocab_size", vocab_size},    {"n_positions", flags.block_size},
                            {"n_layer", flags.n_layer},    {"n_head", flags.n_head},
                            {"n_embd", flags.n_embd},      {"activation_function", flags.activation},
                            {"bias", flags.bias},          {"embd_pdrop", flags.dropout},
                            {"attn_pdrop", flags.dropout}, {"resid_pdrop", flags.dropout}};
  return family.read_config(json, "the flags");
}

std::int64_t vocab_size_of(const Data& data) {
  if (data.tokenizer) return data.tokenizer->vocab_size();
  if (data.dataset.vocab_size) return *data.dataset.vocab_size;
  throw Error(
      "the token files do not say how large their vocabulary is; a meta.json or a tokenizer beside them "
      "does");
}

LoadedModel make_model(const TrainFlags& flags, const Start& start, const Data& data) {
  LoadedModel loaded;
  if (start.checkpoint) {
    loaded = load_model(*start.checkpoint, {.trainable = true, .head = Head::kCausalLm});
  } else {
    loaded.family = &find_family(flags.model_type);
    loaded.head = Head::kCausalLm;
    check_head(*loaded.family, loaded.head);
    const TransformerConfig config = config_of(flags, *loaded.family, vocab_size_of(data));
    loaded.model =
        build_model(*loaded.family, config, loaded.head, static_cast<std::uint64_t>(flags.compute.seed));
  }
  const TransformerConfig& config = loaded.model->config();
  if (flags.block_size > config.max_positions) {
    throw Error("--block_size ", flags.block_size, " is longer than the model's ", config.max_positions,
                " positions");
  }
  if (data.tokenizer && data.tokenizer->vocab_size() > config.vocab_size) {
    throw Error("the tokenizer has ", data.tokenizer->vocab_size(), " tokens, the model's vocabulary ",
                config.vocab_size);
  }
  data.dataset.train.require_ids_below(config.vocab_size);
  data.dataset.val.require_ids_below(config.vocab_size);
  loaded.model->to(device_of(flags.compute));
  return loaded;
}

TrainerOptions trainer_options(const TrainFlags& flags) {
  TrainerOptions options;
  options.max_iters = flags.max_iters;
  options.gradient_accumulation_steps = flags.gradient_accumulation_steps;
  options.eval_interval = flags.eval_interval;
  options.eval_iters = flags.eval_iters;
  options.log_interval = flags.log_interval;
  options.always_save_checkpoint = flags.always_save_checkpoint;
  options.seed = static_cast<std::uint64_t>(flags.compute.seed);
  options.device = device_of(flags.compute);
  options.dtype = dtype_of(flags.compute);
  if (options.dtype == at::kHalf)
    throw UsageError("--dtype: training is in float32 or bfloat16, not float16");
  options.disagreement = disagreement_named(flags.disagreement);
  options.disagreement_weight = flags.disagreement_weight;
  options.schedule = {.kind = flags.decay_lr ? schedule_named(flags.lr_schedule) : ScheduleKind::kConstant,
                      .peak = flags.learning_rate,
                      .floor = flags.min_lr,
                      .warmup_iters = flags.decay_lr ? flags.warmup_iters : 0,
                      .decay_iters = flags.lr_decay_iters.value_or(flags.max_iters)};
  options.adamw = {.beta1 = flags.beta1,
                   .beta2 = flags.beta2,
                   .weight_decay = flags.weight_decay,
                   .grad_clip = flags.grad_clip};
  return options;
}

Trainer::SaveModel saver(const LoadedModel& loaded, std::shared_ptr<const Tokenizer> tokenizer) {
  SaveOptions options;
  if (tokenizer && tokenizer->eos_id()) options.eos_token_id = *tokenizer->eos_id();
  return [loaded, tokenizer, options](const fs::path& directory) {
    save_model(*loaded.model, *loaded.family, loaded.head, directory, options);
    if (tokenizer) tokenizer->save(directory);
  };
}

void write_run_config(const RunDirectory& run, nlohmann::json resolved) {
  if (resolved["init_from"] == "resume") resolved["init_from"] = origin_of(run);
  write_json(run.config_path(), resolved);
}

void discard_old_run(const RunDirectory& run) {
  for (const char* part : {"checkpoints", "best", "final", "metrics.jsonl", "loss.png"}) {
    fs::remove_all(run.path() / part);
  }
}

int report(const Trainer::Result& result, const RunDirectory& run) {
  const std::string folder = run.path().string();
  if (!result.finished) {
    std::cerr << "stopped after iteration " << result.iterations
              << "; go on with: tzoo train --init_from resume"
              << " --out_dir " << folder << "\n";
    return 128 + StopSignal::received();
  }
  std::cout << "validation loss " << result.final_val_loss << " after " << result.iterations
            << " iterations (best " << std::min(result.best_val_loss, result.final_val_loss) << ")\n"
            << "model in " << (run.path() / "final").string() << "\n";
  return 0;
}

}  // namespace

int run_train(const Arguments& arguments) {
  const auto parsed = parse_with_run_config(arguments);
  if (!parsed) return 0;
  const TrainFlags& flags = parsed->values;
  apply_threads(flags.compute);

  RunDirectory run(flags.out_dir, flags.keep_checkpoints);
  const Start start = find_start(flags, run);
  const Data data = read_data(flags, start);
  const LoadedModel loaded = make_model(flags, start, data);
  const TrainerOptions options = trainer_options(flags);
  if (start.resumed && *start.resumed > options.max_iters) {
    throw Error("--max_iters ", options.max_iters, ": the run is at iteration ", *start.resumed, " already");
  }
  LanguageModelBatches batches(data.dataset, {flags.batch_size, flags.block_size}, options.seed,
                               options.device);

  make_directories(run.path());
  run.clean();
  if (flags.init_from != "resume") discard_old_run(run);
  write_run_config(run, parsed->resolved);

  Trainer trainer(loaded.model, batches, run, saver(loaded, data.tokenizer), options);
  if (start.resumed) trainer.resume(*start.resumed);
  std::cerr << "number of parameters: " << human_count(loaded.model->parameter_count()) << "\n";

  const StopSignal signals;
  TrainingReporter reporter(options.max_iters, run.metrics_path(), run.path() / "loss.png");
  const Trainer::Result result = trainer.train(reporter);
  reporter.draw();
  return report(result, run);
}

}  // namespace zoo
