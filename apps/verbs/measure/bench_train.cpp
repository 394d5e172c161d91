#include <algorithm>
#include <iostream>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include "apps/compute/compute.h"
#include "apps/training/batches/block_batches.h"
#include "apps/training/batches/example_batches.h"
#include "apps/training/mixed_precision.h"
#include "apps/verbs/measure/limits.h"
#include "apps/verbs/train/train_parts.h"
#include "data/base/json.h"
#include "models/checkpoint/named_tensors.h"
#include "models/tasks/inference_loading.h"

namespace zoo::embedded {
extern const std::string_view kBenchRecipes;  // bench_recipes.json
}

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr const char* kRandom = "random";
constexpr std::int64_t kWarmUp = 3;  // updates excluded from timing: memory is new, kernels are chosen
constexpr std::int64_t kRandomTokens = std::int64_t{1} << 20;
constexpr std::int64_t kFirstId = 5;  // smallest random id; special tokens are below it
constexpr TokenId kMaskId = 4;

// Training configurations; published speeds are known for some of them.
const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all = [] {
    std::vector<Recipe> list;
    const auto own = ordered_json::parse(embedded::kBenchRecipes, nullptr, true, true);
    for (const auto& [name, recipe] : own.items()) list.push_back({name, recipe.dump()});
    const auto trained = embedded_recipes();
    list.insert(list.end(), trained.begin(), trained.end());
    return list;
  }();
  return all;
}

struct BenchTrainFlags {
  TrainFlags train;
  std::int64_t rounds = 20;
  nlohmann::json recipe;  // name or null
  nlohmann::json given;   // flags
  bool is_random() const { return train.data.dataset == kRandom; }
};

// Empty if the flags only ask for help.
std::optional<BenchTrainFlags> parse(const Arguments& arguments) {
  BenchTrainFlags values;
  values.train.data.dataset = kRandom;
  Flags flags(arguments.command,
              "Measures the time of a training update and what it is spent on. It takes the flags of 'tzoo "
              "train'; those for evaluations and checkpoints have no effect. --dataset random draws random "
              "ids below --vocab_size, for the tasks lm, mlm and seq2seq.");
  flags.group("Measurement");
  flags.add_recipes(recipes());
  flags.add("rounds", values.rounds, "number of updates to measure; the median and the best are printed",
            at_least(1));
  flags.add("init_from", values.train.init_from, "scratch, or a checkpoint directory",
            {.placeholder = "scratch|DIR", .suggestions = {"scratch"}});
  declare_training(flags, values.train);
  flags.example("tzoo bench train --recipe gpt-4x128 --dtype bfloat16");
  if (!flags.parse(arguments)) return std::nullopt;
  values.recipe = flags.resolved()["recipe"];
  values.given = flags.given_values();
  require_task_flags(values.train, [&](const std::string& flag) { return values.given.contains(flag); });
  return values;
}

TokenIds random_ids(std::int64_t count, std::int64_t vocab_size, RandomStream random) {
  TokenIds ids(static_cast<std::size_t>(count));
  for (TokenId& id : ids)
    id = static_cast<TokenId>(kFirstId + random.below(static_cast<std::uint64_t>(vocab_size - kFirstId)));
  return ids;
}

TaskData random_data(const DataFlags& flags) {
  TaskData data;
  const TokenFile tokens(random_ids(kRandomTokens, flags.vocab_size, {1, {}}), kRandom);
  data.tokens = TokenDataset{.train = tokens, .val = tokens, .vocab_size = flags.vocab_size};
  data.loss.label_smoothing = flags.label_smoothing;
  return data;
}

// Pairs of full length, so there is no padding.
std::vector<Example> random_pairs(const DataFlags& flags, std::int64_t count) {
  std::vector<Example> examples(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const RandomStream::Position place{.row = static_cast<std::uint32_t>(i)};
    examples[i].input_ids = random_ids(flags.block_size, flags.vocab_size, {2, place});
    const auto target = random_ids(flags.target_length(), flags.vocab_size, {3, place});
    examples[i].labels.assign(target.begin(), target.end());
  }
  return examples;
}

std::unique_ptr<Batches> random_batches(const BenchTrainFlags& flags, const TaskData& data,
                                        const BatchPlan& plan, c10::Device device) {
  const DataFlags& wanted = flags.train.data;
  const auto seed = static_cast<std::uint64_t>(flags.train.compute.seed);
  switch (wanted.task) {
    case Task::kLm:
      return std::make_unique<LanguageModelBatches>(*data.tokens, wanted.block_size, plan, seed, device);
    case Task::kMlm:
      return std::make_unique<MaskedBlockBatches>(
          *data.tokens,
          MaskedBlockBatches::Options{.block_size = wanted.block_size,
                                      .masking = {.probability = wanted.masking.probability,
                                                  .mask_id = kMaskId,
                                                  .vocab_size = wanted.vocab_size}},
          plan, seed, device);
    case Task::kSeq2Seq: {
      const std::vector<Example> pairs = random_pairs(wanted, 4 * plan.rows_per_update());
      return std::make_unique<ExampleBatches>(
          Examples{pairs, pairs}, CollateOptions{.labels = LabelShape::kSequence}, plan, seed, device);
    }
    default:
      throw UsageError("--dataset random: only for the tasks lm, mlm and seq2seq; --task ",
                       name_of(wanted.task), " needs a dataset");
  }
}

struct Figures {
  std::vector<double> all, data, forward, backward, optimizer;
  std::int64_t tokens = 0, update_bytes = 0;
  double loss = 0;
};

Figures measure(Objective& objective, const TrainerOptions& options, std::int64_t rounds, Ranks* ranks) {
  Updater updater(objective, options.updater, ranks);
  Figures figures;
  std::int64_t next = 0;
  const auto update = [&] {
    updater.run(next++, options.schedule.peak, [] { return false; });
    figures.loss = updater.loss().item<double>();  // synchronizes with a GPU
  };
  figures.update_bytes = cost_of([&] {
                           for (std::int64_t i = 0; i < kWarmUp; ++i) update();
                         }).peak_bytes;
  for (std::int64_t i = 0; i < rounds; ++i) {
    figures.all.push_back(seconds_of(update));
    const UpdateTimes& times = updater.times();
    figures.data.push_back(times.data);
    figures.forward.push_back(times.forward);
    figures.backward.push_back(times.backward);
    figures.optimizer.push_back(times.optimizer);
  }
  figures.tokens = updater.tokens();
  return figures;
}

ordered_json json_of(const BenchTrainFlags& parsed, const LoadedModel& loaded, const ParallelSession& session,
                     c10::Device device, const Figures& figures) {
  const TrainFlags& flags = parsed.train;
  const bool in_float32 = computes_in_float32(dtype_of(flags.compute), device);
  ordered_json json{
      {"work", "train"},
      {"recipe", parsed.recipe},
      {"task", name_of(flags.data.task)},
      {"model_type", loaded.family->model_type},
      {"parameters", loaded.model->parameter_count()},
      {"batch_size", flags.batch_size},
      {"block_size", flags.data.block_size},
      {"gradient_accumulation_steps", flags.trainer.updater.accumulation},
      {"ranks", session.size()},
      {"device", device.str()},
      {"dtype", flags.compute.dtype},
      {"computed_in", in_float32 ? "float32" : flags.compute.dtype},
      {"activation_checkpointing", flags.activation_checkpointing || flags.shards() == Shard::kWeights},
      {"shard", kShardNames[static_cast<std::size_t>(flags.shards())]},
      {"threads", at::get_num_threads()}};
  const auto ms = [](const std::vector<double>& seconds) { return 1000 * median(seconds); };
  json["updates"] = figures.all.size();
  json["update_ms"] = ms(figures.all);
  json["update_ms_min"] = 1000 * *std::min_element(figures.all.begin(), figures.all.end());
  json["data_ms"] = ms(figures.data);
  json["forward_ms"] = ms(figures.forward);
  json["backward_ms"] = ms(figures.backward);
  json["optimizer_ms"] = ms(figures.optimizer);
  json["tokens_per_second"] = static_cast<double>(session.size() * figures.tokens) / median(figures.all);
  json["update_mb"] = static_cast<double>(figures.update_bytes) / (1 << 20);
  json["peak_memory_mb"] = peak_resident_mb();
  json["loss"] = figures.loss;
  return json;
}

std::optional<ordered_json> measure(const BenchTrainFlags& parsed, const ParallelSession& session) {
  const TrainFlags& flags = parsed.train;
  if (flags.trainer.updater.local.steps > 0)
    throw UsageError(
        "--local_steps: the updates of a round differ; ms_per_iter of metrics.jsonl has their mean");
  TrainerOptions options = trainer_options(flags, session);
  const c10::Device device = options.updater.device;
  std::optional<CheckpointConfig> checkpoint;
  if (flags.init_from != "scratch") {
    checkpoint = read_checkpoint_config(flags.init_from);
    require_equal(parsed.given, flags_of(*checkpoint, {}), flags.init_from);
  }
  const Shape shape = checkpoint ? checkpoint->config.shape : family_of(flags).base.shape;
  TaskData data = parsed.is_random()
                      ? random_data(flags.data)
                      : read_task_data(flags.data, shape, known_model(checkpoint, flags.data.task));
  const LoadedModel loaded = make_model(flags, checkpoint, data, device);
  options.updater.optimizer.stacked_rows = stacked_rows(loaded);
  const BatchPlan plan = batch_plan(flags, session);
  const auto batches = parsed.is_random()
                           ? random_batches(parsed, data, plan, device)
                           : make_batches(flags.data, data, loaded.model->config(), plan,
                                          static_cast<std::uint64_t>(flags.compute.seed), device);
  adapt(flags, checkpoint, loaded);
  const auto objective = make_objective(flags, loaded, data, plan, *batches);
  const auto ranks = session.ranks_for(*loaded.model);
  const Figures figures = measure(*objective, options, parsed.rounds, ranks.get());
  if (session.rank() > 0) return std::nullopt;
  return json_of(parsed, loaded, session, device, figures);
}

std::optional<ordered_json> measure_in_session(const BenchTrainFlags& parsed) {
  std::optional<ordered_json> json;
  train_as_rank(parsed.train, [&](const ParallelSession& session) {
    json = measure(parsed, session);
    return 0;
  });
  return json;
}

}  // namespace

std::optional<ordered_json> measure_training(const Arguments& arguments) {
  const auto parsed = parse(arguments);
  return parsed ? measure_in_session(*parsed) : std::nullopt;
}

int run_bench_train(const Arguments& arguments) {
  const auto parsed = parse(arguments);
  if (!parsed) return 0;
  if (const auto status = train_in_processes(arguments, parsed->train)) return *status;
  if (const auto json = measure_in_session(*parsed)) std::cout << json_text(*json) << "\n";
  return 0;
}

}  // namespace zoo
