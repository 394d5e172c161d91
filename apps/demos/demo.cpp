#include "apps/demos/demo.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <sstream>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include "apps/command/progress.h"
#include "apps/training/optimizers/adamw.h"
#include "apps/training/optimizers/schedule.h"
#include "data/base/near_match.h"
#include "models/registry.h"
#include "models/tasks/inference_loading.h"

namespace zoo {

bool begin_demo(Flags& flags, const Arguments& arguments, DemoOptions& options) {
  flags.group("Output");
  flags.add("out_dir", options.out_dir, "directory for the pictures", {.placeholder = "DIR"});
  add_format_flag(flags, options.format);
  flags.add_compute(options.compute);
  if (!flags.parse(arguments)) return false;
  // At these sizes, starting a second thread costs more than it saves.
  at::set_num_threads(static_cast<int>(options.compute.threads.value_or(1)));
  if (options.compute.dtype != "float32") throw UsageError("--dtype: demos compute in float32 only");
  if (options.compute.device != "auto" && !device_of(options.compute).is_cpu())
    throw UsageError("--device: demos compute on the CPU only");
  return true;
}

void note_updates(std::int64_t updates) {
  std::cout << "(" << updates << " updates here: by itself this demo does more, and learns more)\n"
            << std::flush;
}

std::int64_t quick_updates() {
  constexpr std::int64_t kQuickUpdates = 4;
  note_updates(kQuickUpdates);
  return kQuickUpdates;
}

void print_paragraph(const std::string& text) { std::cout << "\n" << paragraph(text); }

std::vector<std::string> split_list(const std::string& flag, const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    const std::size_t begin = part.find_first_not_of(' ');
    if (begin == std::string::npos)
      throw UsageError("--", flag, ": nothing between two commas in '", text, "'");
    parts.push_back(part.substr(begin, part.find_last_not_of(' ') + 1 - begin));
  }
  if (parts.empty()) throw UsageError("--", flag, ": expected a list between commas, got nothing");
  return parts;
}

WordIds::WordIds(const std::vector<Phrase>& phrases) {
  for (const Phrase& phrase : phrases) words_.insert(words_.end(), phrase.begin(), phrase.end());
  std::sort(words_.begin(), words_.end());
  words_.erase(std::unique(words_.begin(), words_.end()), words_.end());
}

std::int64_t WordIds::id(const std::string& word) const {
  const auto found = std::lower_bound(words_.begin(), words_.end(), word);
  if (found == words_.end() || *found != word)
    throw UsageError("the word '", word, "' is not in the training data", did_you_mean(word, words_));
  return found - words_.begin();
}

at::Tensor WordIds::tensor(const std::vector<Phrase>& phrases) const {
  std::vector<at::Tensor> rows;
  for (const Phrase& phrase : phrases) {
    std::vector<std::int64_t> ids;
    for (const std::string& word : phrase) ids.push_back(id(word));
    rows.push_back(at::tensor(ids));
  }
  return at::stack(rows);
}

void fit(torch::nn::Module& model, const Fit& how, const std::function<at::Tensor(std::int64_t)>& loss) {
  AdamW adam(model, {.beta1 = 0.9, .beta2 = 0.999, .weight_decay = 0, .grad_clip = 0});
  const Schedule schedule{.kind = how.warmup > 0 ? ScheduleKind::kCosine : ScheduleKind::kConstant,
                          .peak = how.learning_rate,
                          .floor = 0,
                          .warmup_iters = how.warmup,
                          .decay_iters = how.epochs};
  constexpr std::chrono::seconds kBetweenLines(10);  // in a pipe
  Progress progress(how.epochs, "updates");
  auto told = std::chrono::steady_clock::now();
  for (std::int64_t epoch = 0; epoch < how.epochs; ++epoch) {
    progress.update(epoch);
    if (!progress.on_terminal() && std::chrono::steady_clock::now() - told > kBetweenLines) {
      std::cerr << epoch << " of " << how.epochs << " updates\n";
      told = std::chrono::steady_clock::now();
    }
    adam.zero_grad();
    loss(epoch).backward();
    adam.step(schedule.at(epoch));
  }
}

at::Generator generator_of(std::uint64_t seed) { return at::detail::createCPUGenerator(seed); }

void draw_xavier(torch::nn::Module& module, const at::Generator& generator) {
  const at::NoGradGuard no_grad;
  for (const auto& entry : module.named_parameters()) {
    at::Tensor weight = entry.value();
    const bool is_norm = entry.key().find("norm") != std::string::npos;
    if (weight.dim() < 2) {
      weight.fill_(is_norm && entry.key().ends_with("weight") ? 1.0 : 0.0);
      continue;
    }
    const bool three = entry.key().ends_with("qkv.weight");
    const std::int64_t out = three ? weight.size(0) / 3 : weight.size(0);
    const double bound = std::sqrt(6.0 / static_cast<double>(weight.size(1) + out));
    weight.uniform_(-bound, bound, generator);
  }
}

std::int64_t count(const torch::nn::Module& module) {
  std::int64_t sum = 0;
  for (const auto& parameter : module.parameters()) sum += parameter.numel();
  return sum;
}

std::string threads_text() {
  const int threads = at::get_num_threads();
  return threads == 1 ? "one thread" : std::to_string(threads) + " threads";
}

std::string last_growth(const Curve& curve) {
  const std::size_t last = curve.y.size() - 1;
  return format_text("%.1f", curve.y.at(last) / curve.y.at(last - 1));
}

std::vector<Table::Column> columns(const std::vector<std::string>& texts,
                                   const std::vector<std::string>& numbers) {
  std::vector<Table::Column> all;
  for (const std::string& heading : texts) all.push_back({heading});
  for (const std::string& heading : numbers) all.push_back(number(heading));
  return all;
}

std::vector<std::string> cells(const std::string& name, const std::vector<double>& numbers,
                               const char* format) {
  std::vector<std::string> row{name};
  for (const double each : numbers) row.push_back(format_text(format, each));
  return row;
}

HeatMap weights_map(const std::string& title, const at::Tensor& weights,
                    const std::vector<std::string>& words) {
  return {.axes = {.title = title, .x = "key", .y = "query"},
          .rows = words,
          .columns = words,
          .cells = matrix_of(weights),
          .low = 0,
          .high = 1};
}

WordPairs read_word_pairs(const std::string& text) {
  std::vector<Phrase> pairs;
  for (const std::string& pair : split_list("pairs", text)) {
    pairs.push_back(split_words(pair));
    if (pairs.back().size() != 2) throw UsageError("--pairs: expected two words, got '", pair, "'");
  }
  const WordIds ids(pairs);
  const at::Tensor both = ids.tensor(pairs);
  return {ids, both.reshape({-1, 1}), both.flip({1}).reshape({-1, 1})};
}

at::Tensor learn_word_vectors(const WordPairs& pairs, const WordTraining& how,
                              const std::function<void(std::int64_t, double)>& on_epoch) {
  auto [family, preset] = find_preset("tutorial-embeddings");
  TransformerConfig config = preset.config;
  config.vocab_size = pairs.ids.size();
  config.hidden_size = how.width;
  const auto model = build_model(family, config, Head::kCausalLm, how.seed);
  fit(*model, {how.epochs, how.learning_rate}, [&](std::int64_t epoch) {
    const at::Tensor loss = model->forward({.input_ids = pairs.inputs, .targets = pairs.targets}).loss;
    if (on_epoch) on_epoch(epoch, loss.item<double>());
    return loss;
  });
  return model->named_parameters()["embed.weight"].detach();
}

}  // namespace zoo
