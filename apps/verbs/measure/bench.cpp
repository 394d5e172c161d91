#include <algorithm>
#include <array>
#include <iostream>
#include <numeric>

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include "apps/compute/compute.h"
#include "apps/hub/hub_cache.h"
#include "apps/verbs/measure/limits.h"
#include "apps/verbs/verbs.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "models/checkpoint/checkpoint.h"
#include "models/generation/generate.h"
#include "models/inference/packed_decoder.h"
#include "models/kernels/cpu.h"
#include "models/tasks/inference_loading.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

struct BenchFlags {
  ModelPath model;
  std::int64_t batch_size = 1, prompt_tokens = 0, new_tokens = 0, num_beams = 1, rounds = 3;
  std::string lengths = "128";
  ComputeOptions compute;
};

std::vector<TokenIds> prompts(const BenchFlags& flags, std::int64_t vocab_size) {
  std::vector<TokenIds> rows;
  for (std::int64_t row = 0; row < flags.batch_size; ++row) {
    TokenIds& ids = rows.emplace_back();
    for (std::int64_t i = 0; i < flags.prompt_tokens; ++i) ids.push_back((37 * i + 101 * row) % vocab_size);
  }
  return rows;
}

void print(const BenchFlags& flags, const std::string& work, ordered_json figures) {
  ordered_json json{{"work", work},
                    {"model", flags.model.string()},
                    {"weights", flags.compute.weights},
                    {"kernels", kernels::name_of(kernels::instruction_set())},
                    {"threads", at::get_num_threads()}};
  json.update(figures);
  if (!json.contains("peak_memory_mb")) json["peak_memory_mb"] = peak_resident_mb();
  std::cout << json_text(json) << "\n";
}

// Greedy decoding without an end token: every run does the same work.
void bench_generation(const BenchFlags& flags, const std::string& work) {
  std::unique_ptr<DecodingModel> model;
  const double seconds_load =
      seconds_of([&] { model = load_decoding_model(read_writing_checkpoint(flags.model), flags.compute); });
  const std::vector<TokenIds> rows = prompts(flags, model->config().vocab_size);
  const GenerationOptions options{.max_new_tokens = flags.new_tokens,
                                  .sampling = {.temperature = 0},
                                  .beams = {.num_beams = flags.num_beams}};
  std::vector<double> prefill, decode;
  for (std::int64_t i = 0; i < flags.rounds; ++i) {
    const GenerationResult result = generate(*model, rows, options);
    prefill.push_back(result.seconds_prefill);
    decode.push_back(result.seconds_decode);
  }
  const auto decoded = static_cast<double>(flags.batch_size * (flags.new_tokens - 1));
  const double peak = peak_resident_mb();  // before the bandwidth test allocates memory
  ordered_json figures{{"cache", flags.compute.cache},
                       {"batch_size", flags.batch_size},
                       {"prompt_tokens", flags.prompt_tokens},
                       {"new_tokens", flags.new_tokens},
                       {"num_beams", flags.num_beams},
                       {"load_seconds", seconds_load},
                       {"prefill_ms", 1000 * median(prefill)},
                       {"prefill_ms_min", 1000 * *std::min_element(prefill.begin(), prefill.end())}};
  if (flags.new_tokens > 1) {
    figures["decode_tokens_per_second"] = decoded / median(decode);
    figures["decode_tokens_per_second_max"] = decoded / *std::min_element(decode.begin(), decode.end());
  }
  const double whole = median(prefill) + median(decode);
  figures["tokens_per_second"] = static_cast<double>(flags.batch_size * flags.new_tokens) / whole;
  if (const auto* packed = dynamic_cast<const inference::PackedDecoder*>(model.get())) {
    const double bandwidth = memory_bandwidth();
    figures["packed_mb"] = static_cast<double>(packed->bytes()) / 1e6;
    figures["cache_bytes_per_token"] = packed->cache_bytes_per_token();
    figures["memory_gb_per_second"] = bandwidth / 1e9;
    const auto steps = static_cast<double>(flags.new_tokens - 1);
    if (steps > 0)
      figures["share_of_bandwidth"] =
          static_cast<double>(packed->decoder_bytes()) * steps / median(decode) / bandwidth;
  }
  figures["peak_memory_mb"] = peak;
  print(flags, work, figures);
}

std::vector<std::int64_t> lengths_of(const BenchFlags& flags, std::int64_t longest) {
  const auto lengths = numbers_between_commas(flags.lengths);
  const auto fits = [&](std::int64_t length) { return length >= 1 && length <= longest; };
  if (!lengths || !std::ranges::all_of(*lengths, fits))
    throw UsageError("--lengths: expected numbers in [1, ", longest, "] between commas, got '", flags.lengths,
                     "'");
  return *lengths;
}

void bench_encoding(const BenchFlags& flags, const std::string& work) {
  const CheckpointConfig checkpoint = read_checkpoint_config(flags.model, Head::kBase);
  const c10::Device device = device_of(flags.compute, checkpoint);
  const LoadedModel loaded = load_model(
      checkpoint,
      {.dtype = dtype_of(flags.compute), .device = device, .stored = packs(checkpoint, flags.compute)});
  if (loaded.model->config().shape == Shape::kEncoderDecoder)
    throw Error("--model: ", flags.model, " is an encoder-decoder; use bench t5");
  make_ready(loaded, flags.compute);
  const std::vector<std::int64_t> lengths = lengths_of(flags, loaded.model->config().max_length());
  const auto batch = std::ssize(lengths);
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const std::int64_t others = loaded.model->config().vocab_size - 1;  // ids besides 0
  const at::Tensor ids = at::arange(batch * longest).mul(37).remainder(others).add(1);
  const at::Tensor mask = at::arange(longest).lt(at::tensor(lengths).unsqueeze(1));
  ModelInputs inputs{.input_ids = ids.view({batch, longest}).to(device)};
  if (!mask.all().item<bool>()) inputs.attention_mask = mask.to(device, at::kLong);
  const at::NoGradGuard no_grad;
  std::vector<double> seconds;
  loaded.model->forward(inputs);
  for (std::int64_t i = 0; i < flags.rounds; ++i)
    seconds.push_back(seconds_of([&] { loaded.model->forward(inputs); }));
  const auto sentences = static_cast<double>(batch);
  print(flags, work,
        {{"sentences", batch},
         {"tokens", std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})},
         {"sentences_per_second", sentences / median(seconds)},
         {"sentences_per_second_max", sentences / *std::min_element(seconds.begin(), seconds.end())}});
}

void bench_load(const BenchFlags& flags, const std::string& work) {
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < flags.rounds; ++i) {
    seconds.push_back(seconds_of([&] {
      const auto model = load_decoding_model(read_writing_checkpoint(flags.model), flags.compute);
      const GenerationOptions options{.max_new_tokens = 1, .sampling = {.temperature = 0}};
      generate(*model, {{1}}, options);
    }));
  }
  print(flags, work, {{"seconds_to_first_token", median(seconds)}});
}

void declare_generation(Flags& flags, BenchFlags& values) {
  flags.add_cache(values.compute);
  flags.add("batch_size", values.batch_size, "number of rows, each with its own prompt",
            between(1, kMostBatchRows));
  flags.add("prompt_tokens", values.prompt_tokens, "tokens per prompt", between(1, 1000000));
  flags.add("new_tokens", values.new_tokens, "tokens to generate per row", at_least(1));
  flags.add("num_beams", values.num_beams, "number of beams; 1: greedy decoding",
            between(1, BeamOptions::kMostBeams));
}

void declare_encoding(Flags& flags, BenchFlags& values) {
  flags.add("lengths", values.lengths,
            "tokens of each sentence, between commas; the batch is padded to the longest",
            {.placeholder = "N,N,…"});
}

// A kind of work, which is named by the last word of the command.
struct BenchedWork {
  const char *description, *example;
  std::int64_t prompt_tokens = 32, new_tokens = 128;
  void (*measure)(const BenchFlags& flags, const std::string& name) = bench_generation;
  void (*declare)(Flags& flags, BenchFlags& values) = declare_generation;
};

constexpr BenchedWork kDecoding{"Measures the tokens per second that a language model generates.",
                                "tzoo bench decode --model gpt2 --weights int8"};
constexpr BenchedWork kPrefilling{"Measures the time to the first token after a long prompt.",
                                  "tzoo bench prefill --model gpt2 --prompt_tokens 512", 512, 1};
constexpr BenchedWork kTranslating{
    "Measures the tokens per second that an encoder-decoder generates, its encoder included.",
    "tzoo bench t5 --model t5-small", 64, 64};
constexpr BenchedWork kEncoding{
    .description = "Measures the sentences per second of an encoder, or of a decoder that gives embeddings.",
    .example = "tzoo bench encode --model bert-base --lengths 8,32,128",
    .measure = bench_encoding,
    .declare = declare_encoding};
constexpr BenchedWork kLoading{
    .description = "Measures the time from a checkpoint directory to the first token.",
    .example = "tzoo bench load --model gpt2",
    .measure = bench_load,
    .declare = nullptr};

int run_work(const Arguments& arguments, const BenchedWork& work) {
  BenchFlags values{.prompt_tokens = work.prompt_tokens, .new_tokens = work.new_tokens};
  Flags flags(arguments.command, work.description);
  add_model_flag(flags, values.model);
  flags.add("rounds", values.rounds, "number of measurements; the median and the best are printed",
            at_least(1));
  flags.add_weights(values.compute);
  flags.add_compute(values.compute);
  if (work.declare != nullptr) work.declare(flags, values);
  flags.example(work.example);
  if (!flags.parse(arguments)) return 0;
  apply_threads(values.compute);
  work.measure(values, arguments.command.substr(arguments.command.rfind(' ') + 1));
  return 0;
}

template <const BenchedWork& work> int bench(const Arguments& arguments) { return run_work(arguments, work); }

constexpr std::array kBenchActions{
    Verb{"decode", "Work", "tokens per second of a language model", bench<kDecoding>},
    Verb{"prefill", "Work", "time to the first token after a long prompt", bench<kPrefilling>},
    Verb{"encode", "Work", "sentences per second of an encoder", bench<kEncoding>},
    Verb{"t5", "Work", "tokens per second of an encoder-decoder", bench<kTranslating>},
    Verb{"load", "Work", "time from a directory to the first token", bench<kLoading>},
    Verb{"train", "Work", "time of a training update", run_bench_train},
    Verb{"compare", "Machine", "what memory and products allow, and the share that work reaches",
         run_bench_compare},
};

}  // namespace

int run_bench(const Arguments& arguments) {
  return dispatch(arguments, "Measures how fast this machine runs and trains models; prints JSON.",
                  kBenchActions);
}

}  // namespace zoo
