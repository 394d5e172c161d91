#include <algorithm>
#include <cmath>
#include <iostream>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/command/progress.h"
#include "apps/compute/compute.h"
#include "apps/verbs/measure/limits.h"
#include "data/base/json.h"
#include "models/generation/generate.h"
#include "models/inference/packed_decoder.h"
#include "models/inference/save_packed.h"
#include "models/kernels/cpu.h"
#include "models/registry.h"

namespace zoo {
namespace {

using kernels::WeightType;
using nlohmann::ordered_json;

constexpr std::int64_t kPrompt = 512, kNewTokens = 64;

struct Kind {
  WeightType type;
  double products = 0;  // operations per second
};

// A kind of work: its speed, and how much of a limit it uses.
struct Reached {
  std::string work;
  const Kind* kind;
  double speed;     // tokens per second
  double used;      // bytes or operations per second
  double rate = 0;  // the limit of `used`; 0: the kind's products

  double share() const { return used / (rate > 0 ? rate : kind->products); }
  std::string limit() const { return rate > 0 ? "memory" : "products"; }
};

// Operations of reading `rows` texts of `length` tokens: products of blocks, and of half the attention.
double operations(const TransformerConfig& config, std::int64_t parameters, std::int64_t rows,
                  std::int64_t length) {
  const std::int64_t blocks = parameters - (config.vocab_size + config.max_positions) * config.hidden_size;
  const std::int64_t attention = config.num_layers * config.hidden_size * length;
  return 2.0 * static_cast<double>(rows * length) * static_cast<double>(blocks + attention);
}

void decode(const Kind& kind, Model& model, std::int64_t rounds, std::vector<Reached>& table) {
  const auto packed = pack(
      model,
      {.weights = kind.type, .cache = kind.type == WeightType::kFloat32 ? kind.type : WeightType::kBfloat16});
  const auto seconds = [&](double GenerationResult::*part, std::size_t length, std::int64_t new_tokens) {
    std::vector<double> measured;
    for (std::int64_t i = 0; i < rounds; ++i) {
      const GenerationOptions greedy{.max_new_tokens = new_tokens, .sampling = {.temperature = 0}};
      measured.push_back(generate(*packed, {TokenIds(length, 7)}, greedy).*part);
    }
    return median(measured);
  };
  // A decoder reads its weights once a token, from memory or a cache where they fit into one: so does this.
  const auto bytes = static_cast<std::size_t>(packed->decoder_bytes());
  const double before = read_rate(bytes);
  const double step = seconds(&GenerationResult::seconds_decode, 32, kNewTokens) / (kNewTokens - 1);
  table.push_back(
      {"decode", &kind, 1 / step, static_cast<double>(bytes) / step, std::max(before, read_rate(bytes))});
  const double whole = seconds(&GenerationResult::seconds_prefill, kPrompt, 1);
  table.push_back({"prefill", &kind, kPrompt / whole,
                   operations(model.config(), model.parameter_count(), 1, kPrompt) / whole});
}

// The backward pass has two products for each of the forward pass.
void train(const Kind& kind, std::int64_t rounds, std::vector<Reached>& table) {
  if (kind.type == WeightType::kBfloat16 && kernels::trains_bfloat16_in_float32()) return;
  const Arguments arguments{
      .command = "tzoo bench train",
      .words = {"--recipe", "gpt-6x384", "--rounds", std::to_string(rounds), "--dtype", name_of(kind.type)}};
  const ordered_json found = *measure_training(arguments);
  const TransformerConfig config{
      .vocab_size = 65, .hidden_size = 384, .num_layers = 6, .max_positions = found["block_size"]};
  const double seconds = found["update_ms"].get<double>() / 1000;
  const double done = 3 * operations(config, found["parameters"], found["batch_size"], found["block_size"]);
  table.push_back({"train", &kind, found["tokens_per_second"], done / seconds});
}

void print_table(double bandwidth, const std::vector<Kind>& kinds, const std::vector<Reached>& reached) {
  const Processor processor = this_processor();
  std::cout << processor.name << "\n"
            << "caches " << processor.caches << "; " << decimal(processor.clock / 1e9, 1) << " GHz, "
            << decimal(kinds.front().products / at::get_num_threads() / processor.clock, 0)
            << " float32 operations a clock and thread\n"
            << kernels::name_of(kernels::instruction_set()) << " kernels, " << at::get_num_threads()
            << " threads\n\n";
  Table limits({{"limit"}, {"numbers"}, number("measured"), {""}});
  limits.row({"memory", "", decimal(bandwidth / 1e9, 1), "GB/s"});
  for (const Kind& kind : kinds)
    limits.row(
        {"products", name_of(kind.type), with_separators(std::llround(kind.products / 1e9)), "Gflop/s"});
  limits.print(std::cout);
  std::cout << "\n";
  Table table({{"work"}, {"numbers"}, number("speed"), {""}, number("share"), {"of"}});
  for (const Reached& row : reached)
    table.row({row.work, name_of(row.kind->type), with_separators(std::llround(row.speed)), "tokens/s",
               decimal(100 * row.share(), 0) + " %", row.limit()});
  table.print(std::cout);
}

void print_json(double bandwidth, const std::vector<Kind>& kinds, const std::vector<Reached>& reached) {
  const Processor processor = this_processor();
  ordered_json json{{"work", "compare"},
                    {"kernels", kernels::name_of(kernels::instruction_set())},
                    {"threads", at::get_num_threads()},
                    {"processor", processor.name},
                    {"clock_ghz", processor.clock / 1e9},
                    {"memory_gb_per_second", bandwidth / 1e9}};
  for (const Kind& kind : kinds) json["products_gflops"][name_of(kind.type)] = kind.products / 1e9;
  for (const Reached& row : reached)
    json["reached"].push_back({{"work", row.work},
                               {"numbers", name_of(row.kind->type)},
                               {"tokens_per_second", row.speed},
                               {"limit", row.limit()},
                               {"share", row.share()}});
  std::cout << json_text(json) << "\n";
}

}  // namespace

int run_bench_compare(const Arguments& arguments) {
  ComputeOptions compute;
  bool json = false;
  std::int64_t rounds = 3;
  Flags flags(
      arguments.command,
      "Measures what this machine's memory and products allow, and what share of it the kinds of work "
      "reach: decoding after 32 tokens and reading a prompt of 512 with a random GPT-2 of 124 M "
      "parameters, training one of 10 M. Takes a minute or two and 2 GB.");
  flags.add("json", json, "print one JSON object instead of tables");
  flags.add("rounds", rounds, "repetitions of each kind of work", between(1, 1000));
  flags.add("threads", compute.threads, "threads on the CPU; default: one per core", between(1, 1024));
  flags.example("tzoo bench compare --threads 2");
  if (!flags.parse(arguments)) return 0;
  apply_threads(compute);

  std::vector<Kind> kinds{
      {WeightType::kFloat32}, {WeightType::kBfloat16}, {WeightType::kInt8}, {WeightType::kInt4}};
  Progress progress(static_cast<std::int64_t>(3 * kinds.size()) + 2, "measurements");
  std::int64_t done = 0;
  double bandwidth = 0;
  // Before the work and after it: the processor's clock and other programs change in a minute.
  const auto measure_limits = [&] {
    bandwidth = std::max(bandwidth, memory_bandwidth());
    for (Kind& kind : kinds) {
      kind.products = std::max(kind.products, product_rate(kind.type));
      progress.update(++done);
    }
  };
  measure_limits();
  std::vector<Reached> reached;
  {
    const auto model = build_model(find_family("gpt2"), find_preset("gpt2").preset.config, Head::kCausalLm,
                                   static_cast<std::uint64_t>(compute.seed));
    model->eval();
    for (const Kind& kind : kinds) {
      decode(kind, *model, rounds, reached);
      progress.update(++done);
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    train(kinds[i], rounds, reached);
    progress.update(++done);
  }
  measure_limits();
  progress.clear();
  (json ? print_json : print_table)(bandwidth, kinds, reached);
  return 0;
}

}  // namespace zoo
