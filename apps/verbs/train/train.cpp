#include <algorithm>
#include <iostream>
#include <set>

#include <nlohmann/json.hpp>

#include "apps/command/output.h"
#include "apps/command/visible_text.h"
#include "apps/training/mixed_precision.h"
#include "apps/verbs/train/text_objectives.h"
#include "apps/verbs/train/train_parts.h"
#include "apps/verbs/verbs.h"
#include "data/base/atomic_file.h"
#include "data/base/directory_lock.h"
#include "data/base/environment.h"
#include "data/base/json.h"
#include "models/checkpoint/named_tensors.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

struct ParsedFlags {
  TrainFlags values;
  nlohmann::json resolved, given;
  std::string origin;            // --init_from at the start of the run, never "resume"
  std::set<std::string> chosen;  // flags with another value than their default's, the recipe's or the run's
  bool default_dataset = false, default_block = false;
};

// Empty if the flags only ask for help. `restarted`: the run that they go on with has what --depth sets.
std::optional<ParsedFlags> parse(const Arguments& arguments, bool restarted = false) {
  ParsedFlags parsed;
  Flags flags(arguments.command, "Trains a model from scratch, fine-tunes a checkpoint, or resumes a run.");
  declare(flags, parsed.values);
  if (!flags.parse(arguments)) return std::nullopt;
  if (flags.given("shard")) parsed.values.shard_optimizer = false;  // its older name
  if (parsed.values.out_dir.empty() && !parsed.values.dry_run)
    throw UsageError("missing flag '--out_dir': directory for the run's checkpoints, metrics and loss curve");
  if (restarted) parsed.values.depth.reset();
  if (parsed.values.depth) apply_depth(flags, parsed.values);
  if (arguments.defaults.empty()) take_adapter(flags, parsed.values);  // a run's config has its values
  parsed.resolved = flags.resolved();
  if (restarted) parsed.resolved["depth"] = nullptr;
  parsed.default_dataset = !flags.given("dataset") && parsed.values.init_from != "resume";
  parsed.default_block = !flags.given("block_size");
  const char* dataset = traits_of(parsed.values.data.task).dataset;
  if (dataset != nullptr && parsed.default_dataset) throw UsageError("missing flag '--dataset': ", dataset);
  parsed.given = flags.given_values();
  parsed.origin = parsed.values.init_from;
  TrainFlags before;
  Flags others(arguments.command, "");
  declare(others, before);
  std::vector<std::string> words;
  if (const auto& recipe = parsed.resolved["recipe"]; recipe.is_string() && arguments.defaults.empty())
    words = {"--recipe", recipe.get<std::string>()};
  others.parse({.command = arguments.command, .words = words, .defaults = arguments.defaults});
  const nlohmann::json base = others.resolved();
  for (const auto& [name, value] : parsed.resolved.items())
    if (value != base[name]) parsed.chosen.insert(name);
  return parsed;
}

// In the directory of a run: the launch_id() of the launcher that began it.
constexpr const char* kLaunchFile = ".launch";

// Before the launcher's first start can fail: what an older one has begun is no run to go on with.
void forget_launch(const TrainFlags& flags) {
  std::error_code ignored;
  if (environment(kRestarts) == "0" && is_first_rank() && !flags.out_dir.empty())
    fs::remove(flags.out_dir / kLaunchFile, ignored);
}

// Whether a process that its launcher has started again (torchrun, or --restart) goes on with the run that
// this launch has begun. Rank 0 makes sure that it is not an older one.
bool goes_on(const TrainFlags& flags) {
  const std::string starts = environment(kRestarts);
  const fs::path file = flags.out_dir / kLaunchFile;
  return !starts.empty() && starts != "0" && !flags.out_dir.empty() && fs::exists(file) &&
         (!is_first_rank() || read_file(file) == launch_id());
}

// Without flags of the start alone: the run has what they set.
std::vector<std::string> words_to_go_on(const std::vector<std::string>& words) {
  const std::set<std::string> of_start{"tokens_per_parameter", "recipe"};
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string name = words[i].substr(0, words[i].find('='));
    std::ranges::replace(name, '-', '_');
    if (!name.starts_with("__") || !of_start.contains(name.substr(2))) kept.push_back(words[i]);
    else if (words[i].find('=') == std::string::npos) ++i;  // its value
  }
  kept.insert(kept.end(), {"--init_from", "resume"});
  return kept;
}

// A resumed run keeps the flags of its start; those given again override them, where they may.
std::optional<ParsedFlags> parse_with_run_config(Arguments arguments) {
  auto parsed = parse(arguments);
  if (!parsed) return parsed;
  forget_launch(parsed->values);
  const bool restarted = goes_on(parsed->values);
  if (restarted) {
    arguments.words = words_to_go_on(arguments.words);
  } else if (parsed->values.init_from != "resume") {
    return parsed;
  }
  const fs::path run = parsed->values.out_dir, config = RunDirectory(run, 0).config_path();
  if (!fs::exists(config)) throw Error("--init_from resume: ", run, " holds no run to resume");
  const auto started = parse(
      {.command = arguments.command, .words = {"--out_dir", run.string()}, .defaults = config.string()});
  parsed =
      parse({.command = arguments.command, .words = arguments.words, .defaults = config.string()}, restarted);
  parsed->origin = started->origin;
  require_same_run(run, started->resolved, parsed->resolved);
  return parsed;
}

// Start of the run: a folder with weights (none: from scratch), and the iteration to continue from.
struct Start {
  std::optional<CheckpointConfig> checkpoint;
  std::optional<std::int64_t> resumed;
};

Start find_start(const TrainFlags& flags, const std::string& origin, const RunDirectory& run) {
  if (flags.init_from == "resume") {
    const auto steps = run.steps();
    if (!steps.empty())
      return {read_checkpoint_config(run.step_path(steps.back()), std::nullopt, /*applies_adapters=*/true),
              steps.back()};
    if (fs::exists(run.path() / "final"))
      throw Error("--init_from resume: ", run.path(), " has a final model and no checkpoints to go on from; ",
                  "start another run with --init_from ", run.path() / "final");
    std::cerr << "no checkpoint in " << run.path().string() << " yet: starting at iteration 0\n";
  } else if (!flags.dry_run && !flags.overwrite) {
    if (run.holds_run())
      throw Error("--out_dir: ", run.path(), " already holds a run; continue it with --init_from resume, ",
                  "choose another directory, or replace it with --overwrite");
    if (const std::string part = run.foreign_part(); !part.empty())
      throw Error("--out_dir: ", run.path(), " holds '", part, "', which is not of a run and would be ",
                  "deleted; choose another directory, or say --overwrite");
  }
  if (origin == "scratch") return {};
  if (!fs::is_directory(origin))
    throw Error("--init_from: expected scratch, resume or a directory of a checkpoint or an adapter, got '",
                origin, "'");
  if (const std::string base = base_of_adapter(origin); !base.empty())  // adapt() adds the terms
    return {read_checkpoint_config({base, origin}, std::nullopt, /*applies_adapters=*/true), std::nullopt};
  return {read_checkpoint_config({origin, flags.adapter}), std::nullopt};
}

// Until the directory's lock was taken another process may have trained there.
void require_as_found(const RunDirectory& run, const TrainFlags& flags, const Start& start, bool resumes) {
  const std::vector<std::int64_t> steps = run.steps();
  const auto newest = steps.empty() ? std::optional<std::int64_t>() : steps.back();
  if (resumes ? newest != start.resumed : !flags.overwrite && run.holds_run())
    throw Error("--out_dir: another process has written checkpoints into ", run.path(),
                " since this one began");
}

// How processes are started is not of the run: it may go on with another launcher.
void write_run_config(const RunDirectory& run, nlohmann::json resolved, const std::string& origin) {
  for (const char* flag : {"processes", "restart", "master_addr", "master_port"}) resolved.erase(flag);
  resolved["init_from"] = origin;
  write_json(run.config_path(), resolved);
}

int report(const Trainer::Result& result, const RunDirectory& run, const TrainFlags& flags, bool went_on) {
  const std::string folder = run.path().string(), word = shell_word(folder);
  if (!result.finished) {
    std::cerr << "stopped after iteration " << result.iterations
              << "; continue with: tzoo train --init_from resume"
              << " --out_dir " << word;
    if (flags.processes) std::cerr << " --processes " << *flags.processes;
    std::cerr << "\n";
    return 128 + StopSignal::received();
  }
  const std::string last = folder + "/final", best = folder + "/best";
  const bool has_better = result.best_val_loss < result.final_val_loss;
  if (result.early)
    std::cerr << "stopped early: " << flags.trainer.patience
              << " evaluations in a row without a validation loss below " << result.best_val_loss
              << " (--early_stopping_patience)\n";
  const char* const what = flags.freezes_packed() ? "adapter" : "model";
  std::cout << "validation loss " << result.final_val_loss << " after " << result.iterations
            << " iterations: " << what << " in " << last << "\n";
  if (has_better)
    std::cout << "best validation loss " << result.best_val_loss << ": " << what << " in " << best << "\n";
  std::cout << std::flush;
  if (!went_on)
    std::cerr << "the run had finished already; to go on: tzoo train --init_from resume --out_dir " << word
              << (result.early ? " --early_stopping_patience 0"
                               : " --max_iters N, above " + std::to_string(result.iterations))
              << "\n";
  const TaskTraits& task = traits_of(flags.data.task);
  std::cerr << "use it: tzoo " << task.verb << " --" << what << " " << shell_word(has_better ? best : last)
            << task.args << "\n";
  return 0;
}

// An estimate of what an update keeps for its backward pass, in bytes of float32: of each layer 17 vectors
// per token and 2.5 attention matrices per head (Korthikanti et al., 2022, section 4.1), then the logits and
// their gradients. Checkpointing keeps a layer's input alone, and one layer at a time.
std::int64_t activation_bytes(const TrainFlags& flags, const TransformerConfig& config) {
  const auto number = [](std::int64_t count) { return static_cast<double>(count); };  // no product overflows
  // A row of these tasks has two texts, of which --mini_batch_size computes some at a time.
  const bool pairs = flags.data.task == Task::kEmbedding || flags.data.task == Task::kPreference;
  const double texts = pairs ? number(flags.embedding.mini_batch_size.value_or(2 * flags.batch_size))
                             : number(flags.batch_size);
  const double length = number(flags.data.block_size), tokens = texts * length;
  const double hidden = tokens * number(config.hidden_size), all = number(config.num_layers);
  const double layer = 17 * hidden + 2.5 * tokens * number(config.num_heads) * length;
  const double layers = flags.activation_checkpointing ? layer + all * hidden : all * layer;
  // Beside a teacher's logits are their logarithms, and those of the student.
  const double tables = !traits_of(flags.data.task).writes() ? 0 : flags.teacher.empty() ? 3 : 9;
  const double bytes = 4 * (layers + tables * tokens * number(config.vocab_size));
  return static_cast<std::int64_t>(std::min(bytes, 0x1p62));
}

int train_with(Trainer& trainer, const Model& model, const TrainerOptions& options, const RunDirectory& run,
               const TrainFlags& flags, std::optional<std::int64_t> resumed, TextSamples samples) {
  const bool silent = options.ranks != nullptr && options.ranks->rank() > 0;
  const StopSignal signals(silent ? ""
                                  : "stopping: a checkpoint is saved in " +
                                        (run.path() / "checkpoints").string() +
                                        " as soon as the running step ends; Ctrl-C again loses it");
  if (silent) {
    SilentObserver observer;
    return trainer.train(observer).finished ? 0 : 128 + StopSignal::received();
  }
  const std::int64_t all = model.parameter_count(), trained = trained_parameters(model);
  std::cerr << "number of parameters: " << human_count(all);
  if (trained < all) std::cerr << "; trained: " << human_count(trained);
  std::cerr << "\n";
  if (computes_in_float32(options.updater.dtype, options.updater.device))
    std::cerr << "note: this CPU has no products of bfloat16, so --dtype bfloat16 computes in float32, which "
                 "is faster here\n";
  TrainingReporter reporter(options.max_iters, run, std::move(samples));
  const Trainer::Result result = trainer.train(reporter);
  reporter.clear();
  if (result.iterations > 0) reporter.draw();
  print_cost(result, model, flags.data.block_size,
             options.updater.device.is_cpu() && options.ranks == nullptr);
  return report(result, run, flags, result.iterations != resumed);
}

// What makes ranks train something else if it differs.
ParallelSession::Facts facts_of(const ParsedFlags& parsed, const TaskData& data) {
  ParallelSession::Facts facts{{"tzoo's version", version()}, {"the hash of the data", data.sha256}};
  for (const auto& [key, value] : parsed.resolved.items())
    if (key != "threads") facts.emplace_back("--" + key, flag_text(value));
  return facts;
}

int train(const ParsedFlags& parsed, const ParallelSession& session) {
  TrainFlags flags = parsed.values;
  if (flags.shards() == Shard::kWeights) flags.activation_checkpointing = true;
  if (const std::string ranks = session.description(); session.rank() == 0 && !ranks.empty())
    std::cerr << ranks << "\n";
  RunDirectory run(flags.out_dir, flags.keep_checkpoints);
  for (const auto& [flag, path] : {std::pair("init_from", flags.init_from),
                                   {"adapter", flags.adapter.string()},
                                   {"init_from", base_of_adapter(flags.init_from)},
                                   {"teacher", flags.teacher.string()},
                                   {"tokenizer", flags.data.tokenizer.value_or("")}})
    if (flags.init_from != "resume" && run.discards(path))
      throw UsageError("--", flag, " ", path, ": the new run would replace it; choose another --out_dir");
  const Start start = find_start(flags, parsed.origin, run);
  if (std::int64_t& steps = flags.trainer.updater.accumulation;
      start.resumed && flags.trainer.updater.local.steps == 0) {
    const std::int64_t before =
        std::exchange(steps, equal_accumulation(run.step_path(*start.resumed), flags, session.size()));
    if (steps != before && session.rank() == 0)
      std::cerr << "another number of ranks goes on: " << steps
                << " micro batches on each for the same batch\n";
  }
  TrainerOptions options = trainer_options(flags, session);
  const c10::Device device = options.updater.device;
  const KnownModel known = known_model(start.checkpoint, flags.data.task);
  nlohmann::json resolved = parsed.resolved;
  if (start.checkpoint && flags.init_from != "resume") {
    nlohmann::json own = flags_of(*start.checkpoint, known);
    require_equal(parsed.given, own, flags.init_from);
    own.erase("tokenizer");  // not a kind to train
    // A checkpoint may have what no flag can say.
    if (own.value("vocab_size", kLeastVocabulary) < kLeastVocabulary) own.erase("vocab_size");
    if (std::ranges::count(kActivations, own.value("activation", "")) == 0) own.erase("activation");
    resolved.update(own);
    const auto dropout = resolved.find("dropout");
    if (dropout != resolved.end() && dropout->is_array()) resolved.erase(dropout);  // the flag has no list
    if (const std::int64_t longest = traits_of(flags.data.task).longest; longest > 0 && parsed.default_block)
      resolved["block_size"] = flags.data.block_size =
          std::min(start.checkpoint->config.max_length(), longest);
  }
  // Without a checkpoint the run begins again, and so does its new head.
  const bool begins_again = flags.init_from == "resume" && !start.resumed;
  if (begins_again) flags.init_from = parsed.origin;
  // The checkpoint has the template with which the run began; its file may have changed since.
  if (start.resumed) flags.data.chat_template.clear();
  // Decides the special tokens of the texts.
  const Shape shape = start.checkpoint ? start.checkpoint->config.shape : family_of(flags).base.shape;
  TaskData data = read_task_data(flags.data, shape, known);
  if (!flags.teacher.empty()) data.sha256 += fingerprint_of_weights(flags.teacher);
  if (start.resumed) require_same_data(run.step_path(*start.resumed), flags, data.sha256);
  const LoadedModel loaded = make_model(flags, start.checkpoint, data, device);
  options.updater.optimizer.stacked_rows = stacked_rows(loaded);
  if (flags.tokens_per_parameter) {
    options.max_iters = updates_of(flags, data, *loaded.model, session);
    resolved["max_iters"] = options.max_iters;
  }
  for (const char* dial : {"depth", "tokens_per_parameter"})
    resolved[dial] = nullptr;  // the run has what they set
  if (start.resumed && *start.resumed > options.max_iters)
    throw Error("--max_iters ", options.max_iters, ": the run is already at iteration ", *start.resumed);
  const Task task = flags.data.task;
  const BatchPlan plan = batch_plan(flags, session);
  std::optional<EmbeddingTask> embedding;
  if (task == Task::kEmbedding) embedding.emplace(flags, *start.checkpoint, loaded, device);
  const auto adapters = adapt(flags, start.checkpoint, loaded);
  if (adapters && embedding && embedding->has_weights())
    std::cerr << "note: with --lora_rank the weights of a Dense or LayerNorm module stay as they are\n";
  std::unique_ptr<Batches> batches;
  std::unique_ptr<Objective> objective;
  NamedTensors reference;  // of the task preference
  if (embedding) {
    objective = embedding->objective(data, plan);
  } else if (task == Task::kRanking) {
    objective = ranking_objective(flags, loaded, data, plan);
  } else if (task == Task::kPreference) {
    const fs::path kept = start.resumed ? run.path() / kReferenceFile : fs::path();
    objective = preference_objective(flags, loaded, data, plan, kept, reference);
  } else {
    batches = make_batches(flags.data, data, loaded.model->config(), plan, options.seed, device);
    objective = make_objective(flags, loaded, data, plan, *batches);
  }
  if (flags.dry_run) return dry_run(*objective, options.updater, options.max_iters);
  check_memory(*objective, options.updater, activation_bytes(flags, loaded.model->config()),
               /*says=*/flags.tokens_per_parameter && session.rank() == 0);
  const auto ranks = session.ranks_for(*loaded.model, facts_of(parsed, data));
  options.ranks = ranks.get();
  if (ranks && flags.trainer.updater.local.steps == 0) objective->join(*ranks);
  TextSamples samples = text_samples(flags, *loaded.model, data.tokenizer);
  const bool writes = session.rank() == 0;
  std::optional<DirectoryLock> lock;
  if (writes) {
    make_directories(run.path());
    lock.emplace(run.path());
    run.clean();
    require_as_found(run, flags, start, begins_again || start.resumed);
  }

  Trainer::SaveModel save_modules;
  if (embedding) save_modules = [&](const fs::path& directory) { embedding->save(directory); };
  if (task == Task::kRanking)
    save_modules = [&](const fs::path& directory) { name_activation(flags, directory); };
  if (writes && adapters && adapters->options().base.empty() && !start.resumed)
    std::cerr << "note: no adapter is written beside the merged model, since the model that it would belong "
                 "to is in no directory\n";
  const Savers save = savers(loaded, start.checkpoint, data, adapters, save_modules);
  if (writes && !start.resumed && !save.unknown.empty())
    std::cerr << "note: of " << start.checkpoint->directory.string() << ", the trained model does not have "
              << joined(save.unknown) << "\n";
  options.save_step = save.step;
  options.data_sha256 = data.sha256;
  Trainer trainer(*objective, run, save.whole, options);
  if (start.resumed) trainer.resume(*start.resumed);
  // Last, so that a checkpoint that does not fit leaves the run as it was.
  if (writes && !start.resumed) begins_again ? run.discard_events() : run.discard();
  // A run without a checkpoint starts again, with the same weights.
  if (writes && !start.resumed && !reference.empty())
    write_safetensors(run.path() / kReferenceFile, reference);
  if (writes) write_run_config(run, std::move(resolved), parsed.origin);
  if (writes && !environment(kRestarts).empty()) write_file(run.path() / kLaunchFile, launch_id());
  if (parsed.default_dataset && writes)
    std::cerr << "dataset: " << flags.data.dataset
              << "; --dataset takes another ('tzoo data list' has names)\n";
  return train_with(trainer, *loaded.model, options, run, flags, start.resumed, std::move(samples));
}

}  // namespace

int run_train(const Arguments& arguments) {
  const auto parsed = parse_with_run_config(arguments);
  if (!parsed) return 0;
  require_task_flags(parsed->values, [&](const std::string& flag) { return parsed->chosen.contains(flag); });
  if (const auto status = train_in_processes(arguments, parsed->values)) return *status;
  return train_as_rank(parsed->values,
                       [&](const ParallelSession& session) { return train(*parsed, session); });
}

}  // namespace zoo
