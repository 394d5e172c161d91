#include <cmath>
#include <iostream>

#include <ATen/ops/linspace.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randn.h>

#include "apps/demos/demo.h"
#include "models/layers/feed_forward.h"

namespace zoo::demos::feed_forwards {

constexpr Activation kKinds[] = {Activation::kRelu,  Activation::kGelu,  Activation::kGeluTanh,
                                 Activation::kSilu,  Activation::kReGlu, Activation::kGeGlu,
                                 Activation::kSwiGlu};
constexpr std::int64_t kWidth = 48, kEpochs = 400, kExamples = 512;

// A gated layer has three matrices instead of two, so it gets two thirds of the width.
TransformerConfig config_of(Activation kind) {
  return {.hidden_size = kWidth,
          .intermediate_size = is_gated(kind) ? 8 * kWidth / 3 : 4 * kWidth,
          .activation = kind,
          .feed_forward_bias = false};
}

Figure curves() {
  const at::Tensor x = at::linspace(-4, 4, 161);
  std::vector<Curve> lines;
  for (const Activation kind : {Activation::kRelu, Activation::kGelu, Activation::kSilu})
    lines.push_back({std::string(name_of(kind)), numbers_of(x), numbers_of(activate(x, kind))});
  return line_chart(
      {.title = "Activations: a gated unit multiplies one by x V", .x = "x", .y = "activation(x)"}, lines);
}

}  // namespace zoo::demos::feed_forwards

void zoo::demo_feed_forwards(const Arguments& arguments) {
  using namespace demos::feed_forwards;
  DemoOptions options;
  Flags flags(arguments.command, "Trains feed-forward variants with equal parameters on the same task.");
  if (!begin_demo(flags, arguments, options)) return;

  const at::Generator generator = generator_of(options.seed());
  const at::Tensor x = at::randn({kExamples, kWidth}, generator);
  // Products of pairs of projections, which no layer represents exactly.
  const auto projected = [&] { return x.matmul(at::randn({kWidth, kWidth}, generator)) / std::sqrt(kWidth); };
  const at::Tensor a = projected(), b = projected(), y = (a * b).tanh();
  Table table(columns({"feed-forward"},
                      {"width", "parameters", "error at 0", "error at " + std::to_string(kEpochs)}));
  std::vector<Curve> losses;
  for (const Activation kind : kKinds) {
    FeedForward layer(config_of(kind));
    draw_xavier(*layer, generator_of(options.seed()));
    Curve line{std::string(name_of(kind)), {}, {}};
    fit(*layer, {kEpochs, 0.003}, [&](std::int64_t epoch) {
      const at::Tensor loss = at::mse_loss(layer(x), y);
      if (epoch % 5 == 0) line.add(epoch, loss.item<double>());
      return loss;
    });
    const at::NoGradGuard no_grad;
    const double error = at::mse_loss(layer(x), y).item<double>();
    table.row({std::string(name_of(kind)), std::to_string(config_of(kind).feed_forward_size()),
               with_separators(count(*layer)), format_text("%.4f", line.y.front()),
               format_text("%.4f", error)});
    losses.push_back(std::move(line));
  }
  table.print(std::cout);
  print_paragraph(
      "Two thirds of the width pay for a gated unit's third matrix. The task multiplies projections, "
      "which a gate does too:\nsee the gated units fit it faster with the same number of parameters.");
  show(options, "feed-forwards",
       grid("Feed-forward variants at equal parameters",
            {line_chart({.title = "Mean square error", .x = "update", .y = "error", .log_y = true}, losses),
             curves()},
            2));
}
