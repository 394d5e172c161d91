#include <iostream>

#include <ATen/ops/cat.h>
#include <ATen/ops/randint.h>

#include "apps/compute/compute.h"
#include "apps/demos/demo.h"
#include "apps/training/mixed_precision.h"
#include "models/kernels/cpu.h"
#include "models/layers/recompute.h"
#include "models/registry.h"

namespace zoo::demos::training_memory {

constexpr std::int64_t kVocabulary = 256, kRows = 16, kLength = 128, kPieces = 4;
constexpr double kLossScale = 65536;  // where tzoo train --dtype float16 begins

std::shared_ptr<Model> build(std::uint64_t seed) {
  const TransformerConfig config{.vocab_size = kVocabulary,
                                 .hidden_size = 128,
                                 .num_layers = 6,
                                 .num_heads = 4,
                                 .max_positions = kLength};
  return build_model(find_family("gpt2"), config, Head::kCausalLm, seed);
}

/// How the gradient of one update is computed.
struct Way {
  std::string name;
  std::int64_t pieces = 1;  // of the batch, in turn: gradient accumulation
  at::ScalarType dtype = at::kFloat;
  bool recomputes = false;  // activation checkpointing
};

std::vector<Way> ways() {
  return {{.name = "plain"},
          {.name = std::to_string(kPieces) + " pieces", .pieces = kPieces},
          {.name = "bfloat16", .dtype = at::kBFloat16},
          {.name = "recomputation", .recomputes = true},
          {.name = "all three", .pieces = kPieces, .dtype = at::kBFloat16, .recomputes = true}};
}

// Adds up the gradient of the mean loss over the batch.
void backward(Model& model, const Way& way, const at::Tensor& ids) {
  const std::int64_t rows = ids.size(0) / way.pieces;
  for (std::int64_t piece = 0; piece < way.pieces; ++piece) {
    const at::Tensor part = ids.slice(0, piece * rows, (piece + 1) * rows);
    at::Tensor loss;
    {
      const AutocastScope autocast(way.dtype, c10::kCPU);
      loss = model.forward({.input_ids = part, .labels = part}).loss;
    }
    // The mean of the pieces' means: they are of one size.
    (loss / static_cast<double>(way.pieces)).backward();
  }
}

struct Measured {
  Cost cost;
  at::Tensor gradient;
};

Measured measure(Model& model, const Way& way, const at::Tensor& ids) {
  recompute_blocks(model, way.recomputes);
  model.zero_grad(/*set_to_none=*/false);
  backward(model, way, ids);  // the first one also makes the gradients' memory
  std::vector<at::Tensor> parts;
  for (const at::Tensor& parameter : model.parameters()) parts.push_back(parameter.grad().flatten());
  const at::Tensor gradient = at::cat(parts);  // a copy
  return {cost_of([&] {
            model.zero_grad(/*set_to_none=*/false);
            backward(model, way, ids);
          }),
          gradient};
}

std::string difference(const at::Tensor& gradient, const at::Tensor& plain) {
  const double relative = ((gradient - plain).norm() / plain.norm()).item<double>();
  return relative == 0 ? "0" : format_text("%.1e", relative);
}

// Shares of the gradient's numbers that float16 cannot hold; those that are 0 in float32 are not lost.
void print_half(const at::Tensor& gradient) {
  const at::Tensor some = gradient.masked_select(gradient.ne(0));
  const auto share = [](const at::Tensor& x) { return 100 * x.to(at::kFloat).mean().item<double>(); };
  Table table(columns({}, {"loss times", "become 0", "become infinite"}));
  for (const double scale : {1.0, 1024.0, kLossScale, kLossScale * 4096})
    table.row(
        cells(with_separators(static_cast<std::int64_t>(scale)),
              {share((some * scale).to(at::kHalf).eq(0)), share((gradient * scale).to(at::kHalf).isinf())},
              "%.3f%%"));
  std::cout << "\nWhy float16 needs a loss scale: the gradient's numbers that it cannot hold\n";
  table.print(std::cout);
}

}  // namespace zoo::demos::training_memory

void zoo::demo_training_memory(const Arguments& arguments) {
  using namespace demos::training_memory;
  DemoOptions options;
  Flags flags(arguments.command,
              "Computes the gradient of one update with gradient accumulation, in bfloat16 and with gradient "
              "checkpointing: memory, time, and difference from the plain gradient.");
  if (!begin_demo(flags, arguments, options)) return;

  const auto model = build(options.seed());
  model->train();
  const at::Tensor ids = at::randint(kVocabulary, {kRows, kLength}, generator_of(options.seed()), at::kLong);
  Table table(columns({"gradient"}, {"rows at a time", "activations", "time, ms", "difference"}));
  BarChart memory{.axes = {.title = "Peak of the activations", .x = "way", .y = "MB"}};
  BarChart times{.axes = {.title = "Time of a gradient", .x = "way", .y = "ms"}, .group = 1};
  at::Tensor plain;
  for (const Way& way : ways()) {
    const Measured measured = measure(*model, way, ids);
    if (!plain.defined()) plain = measured.gradient;
    table.row({way.name, std::to_string(kRows / way.pieces), human_bytes(measured.cost.peak_bytes),
               format_text("%.0f", 1000 * measured.cost.seconds), difference(measured.gradient, plain)});
    memory.labels.push_back(way.name), times.labels.push_back(way.name);
    memory.values.push_back(static_cast<double>(measured.cost.peak_bytes) / 1e6);
    times.values.push_back(1000 * measured.cost.seconds);
  }
  std::cout << "The gradient of " << human_count(model->parameter_count()) << " parameters from " << kRows
            << " sequences of " << kLength << " tokens, without dropout\n";
  table.print(std::cout);
  print_paragraph(
      "Pieces of a batch, added up, are the same gradient except for the order of sums; activations "
      "computed again are the same\nto the last bit; bfloat16 keeps 8 bits of every number. Weights, "
      "gradients and the optimizer's state come on top\nof the activations, the same each time: " +
      human_bytes(16 * model->parameter_count()) + " with Adam. Times are the least of several, on " +
      threads_text() + ".");
  if (kernels::trains_bfloat16_in_float32())
    std::cout << paragraph(
        "This CPU has no products of bfloat16: tzoo computes in float32 instead, which is faster "
        "here.");
  print_half(plain);
  show(options, "training-memory",
       grid("The same gradient in less memory", {bar_chart(memory), bar_chart(times)}, 2));
}
