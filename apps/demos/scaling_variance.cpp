#include <cmath>
#include <iostream>

#include <ATen/ops/randn.h>

#include "apps/demos/demo.h"
#include "models/layers/attention/attention.h"
#include "models/layers/attention/positions.h"

namespace zoo::demos::scaling_variance {

constexpr std::int64_t kSizes[] = {4, 16, 64, 256, 1024};
constexpr std::int64_t kQueries = 512, kKeys = 64;

struct Measured {
  double variance;  // of the scores
  double largest;   // mean over the queries of the largest of kKeys weights
  double slope;     // mean over the queries of sum_s p (1 - p): the gradient that softmax passes on
};

Measured measure(const at::Tensor& q, const at::Tensor& k, double scale) {
  const at::Tensor scores = q.matmul(k.transpose(-2, -1)) * scale;
  const at::Tensor weights =
      ops::scaled_dot_product_attention(q, k, k, {}, {.scale = scale, .need_weights = true}).weights;
  return {scores.var().item<double>(), std::get<0>(weights.max(-1)).mean().item<double>(),
          (weights * (1 - weights)).sum(-1).mean().item<double>()};
}

struct Curves {
  Curve raw, scaled;
  void add(std::int64_t size, double without, double with) {
    raw.add(size, without);
    scaled.add(size, with);
  }
};

// Token embeddings drawn from normal(0, 0.02) or normal(0, 1 / C) beside sinusoidal positions.
void print_embeddings(const at::Generator& generator) {
  Table table(columns({}, {"C", "position", "token, 0.02", "… times √C", "token, 1/√C", "… times √C"}));
  for (const std::int64_t width : {64, 512, 768}) {
    const auto root = std::sqrt(static_cast<double>(width));
    const auto length = [](const at::Tensor& rows) { return rows.norm(2, {-1}).mean().item<double>(); };
    const double drawn = length(at::randn({1000, width}, generator));
    const double position = length(sinusoidal_positions(512, width));
    table.row(cells(std::to_string(width), {position, 0.02 * drawn, 0.02 * drawn * root, drawn / root, drawn},
                    "%.2f"));
  }
  print_paragraph(
      "Lengths of the vectors that are added at the bottom: without the factor √C positions drown the "
      "tokens");
  table.print(std::cout);
}

}  // namespace zoo::demos::scaling_variance

void zoo::demo_scaling_variance(const Arguments& arguments) {
  using namespace demos::scaling_variance;
  DemoOptions options;
  Flags flags(arguments.command,
              "Measures why attention divides its scores by the square root of their dimension.");
  if (!begin_demo(flags, arguments, options)) return;

  const at::Generator generator = generator_of(options.seed());
  Curves variance{{"q·k"}, {"q·k / √D"}}, largest = variance, slope = variance;
  Table table(columns({}, {"D", "var(q·k)", "var(q·k/√D)", "largest weight", "… scaled",
                           "gradient let through", "… scaled"}));
  for (const std::int64_t size : kSizes) {
    const at::Tensor q = at::randn({1, 1, kQueries, size}, generator);
    const at::Tensor k = at::randn({1, 1, kKeys, size}, generator);
    const Measured raw = measure(q, k, 1.0);
    const Measured scaled = measure(q, k, 1.0 / std::sqrt(static_cast<double>(size)));
    table.row({std::to_string(size), format_text("%.1f", raw.variance), format_text("%.3f", scaled.variance),
               format_text("%.3f", raw.largest), format_text("%.3f", scaled.largest),
               format_text("%.4f", raw.slope), format_text("%.4f", scaled.slope)});
    variance.add(size, raw.variance, scaled.variance);
    largest.add(size, raw.largest, scaled.largest);
    slope.add(size, raw.slope, scaled.slope);
  }
  table.print(std::cout);
  print_paragraph(
      "The variance of a dot product of D standard normal pairs is D: at D = 1024 softmax over " +
      std::to_string(kKeys) +
      " keys gives\nnearly everything to one of them and lets hardly any gradient through. Divided by "
      "√D it is 1 at every D.");
  print_embeddings(generator);
  const auto panel = [](const char* title, const char* y, const Curves& curves, bool log_y) {
    return line_chart({.title = title, .x = "head dimension D", .y = y, .log_x = true, .log_y = log_y},
                      {curves.raw, curves.scaled});
  };
  show(options, "scaling-variance",
       grid("Why the scores are divided by √D",
            {panel("Variance of the scores", "variance", variance, true),
             panel("Largest of 64 attention weights", "weight", largest, false),
             panel("Gradient that softmax lets through", "sum of p (1 - p)", slope, false)},
            3));
}
