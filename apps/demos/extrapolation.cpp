#include "apps/demos/extrapolation.h"

#include <iostream>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/cummax.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/where.h>

#include "apps/command/output.h"
#include "apps/command/terminal.h"
#include "apps/demos/demo.h"
#include "models/registry.h"

namespace zoo {
namespace demos::extrapolation {

constexpr PositionKind kKinds[] = {PositionKind::kNone, PositionKind::kSinusoidal, PositionKind::kLearned,
                                   PositionKind::kShaw, PositionKind::kT5Buckets,  PositionKind::kRotary,
                                   PositionKind::kAlibi};
constexpr std::int64_t kTrained = 24, kLengths[] = {24, 48, 96, 192};
constexpr std::int64_t kLetters = 6, kOthers = 6, kUpdates = 200, kBatch = 24, kTested = 64;
constexpr double kShare = 0.2;  // share of letters among the words

std::shared_ptr<Model> build(PositionKind kind, std::uint64_t seed) {
  TransformerConfig config;
  config.vocab_size = kLetters + kOthers;
  config.hidden_size = 32;
  config.num_layers = 2;
  config.num_heads = 4;
  config.max_positions = 192;
  config.position = kind;
  config.relative_buckets = 16;
  config.relative_max_distance = kind == PositionKind::kShaw ? 16 : 64;
  config.initializer_range = 0.1;
  return build_model(find_family("gpt2"), config, Head::kCausalLm, seed);
}

struct Sequences {
  at::Tensor ids, latest;  // [B, T]; the last letter up to each position, -100 before the first
};

// Letters among other words; the task is to remember the last letter.
Sequences draw_sequences(std::int64_t rows, std::int64_t length, const at::Generator& generator) {
  const at::Tensor is_letter = at::rand({rows, length}, generator) < kShare;
  const at::Tensor ids =
      at::where(is_letter, at::randint(kLetters, {rows, length}, generator, at::kLong),
                at::randint(kLetters, kLetters + kOthers, {rows, length}, generator, at::kLong));
  const at::Tensor places = at::where(is_letter, at::arange(length), -1);
  const at::Tensor last = std::get<0>(at::cummax(places, 1));
  return {ids, at::where(last >= 0, ids.gather(1, last.clamp_min(0)), -100)};
}

// Accuracy on the letters in the last kTrained / 2 positions.
double accuracy(Model& model, std::int64_t length, std::uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  const Sequences drawn = draw_sequences(kTested, length, generator);
  const at::Tensor said = model.forward({.input_ids = drawn.ids}).logits.argmax(-1);
  const at::Tensor asked = drawn.latest.slice(1, length - kTrained / 2);
  const at::Tensor right = said.slice(1, length - kTrained / 2).eq(asked).masked_select(asked >= 0);
  return right.to(at::kFloat).mean().item<double>();
}

}  // namespace demos::extrapolation

Figure show_extrapolation(std::uint64_t seed) {
  using namespace demos::extrapolation;
  std::vector<Table::Column> columns{{"positions"}};
  for (const std::int64_t length : kLengths) {
    columns.push_back(
        number(length == kTrained ? "trained: " + std::to_string(length) : std::to_string(length)));
  }
  Table table(columns);
  std::vector<Curve> lines;
  for (const PositionKind kind : kKinds) {
    const auto model = build(kind, seed);
    auto generator = at::detail::createCPUGenerator(seed);
    fit(*model, {kUpdates, 0.003}, [&](std::int64_t) {
      const Sequences drawn = draw_sequences(kBatch, kTrained, generator);
      return model->forward({.input_ids = drawn.ids, .targets = drawn.latest}).loss;
    });
    const at::NoGradGuard no_grad;
    std::vector<std::string> cells{std::string(name_of(kind))};
    lines.push_back({cells.front(), {}, {}});
    for (const std::int64_t length : kLengths) {
      const double right = accuracy(*model, length, seed + 1);
      cells.push_back(format_text("%.1f%%", 100 * right));
      lines.back().x.push_back(static_cast<double>(length));
      lines.back().y.push_back(right);
    }
    table.row(cells);
  }
  std::cout << "\n"
            << paragraph("Trained on " + std::to_string(kTrained) + " words (" + std::to_string(kUpdates) +
                         " updates) to name the latest letter among others, asked at the end of longer ones")
            << "\n";
  table.print(std::cout);
  return line_chart({.title = "Longer than trained",
                     .x = "words",
                     .y = "right answers",
                     .log_x = true,
                     .trained = static_cast<double>(kTrained)},
                    lines);
}

}  // namespace zoo
