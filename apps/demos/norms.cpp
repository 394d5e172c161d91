#include <iostream>

#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "apps/demos/demo.h"
#include "models/layers/stack.h"

namespace zoo::demos::norms {

constexpr std::int64_t kDepths[] = {6, 12, 24, 48};
constexpr std::int64_t kWidth = 64, kLength = 16, kBatch = 8, kClasses = 32;

TransformerConfig config_of(std::int64_t depth, NormPlacement placement) {
  return {.shape = Shape::kEncoder,
          .vocab_size = kClasses,
          .hidden_size = kWidth,
          .num_layers = depth,
          .num_heads = 4,
          .max_positions = kLength,
          .norm_placement = placement,
          .position = PositionKind::kNone,
          .activation = Activation::kRelu};
}

// Gradient norm of each layer's last projection at the start of training.
std::vector<double> gradient_norms(std::int64_t depth, NormPlacement placement, std::uint64_t seed) {
  const at::Generator generator = generator_of(seed);
  TransformerStack stack(config_of(depth, placement));
  Linear head(kWidth, kClasses);
  const at::Tensor x = at::randn({kBatch, kLength, kWidth}, generator);
  const at::Tensor classes = at::randint(kClasses, {kBatch * kLength}, generator, at::kLong);
  draw_xavier(*head, generator);
  draw_xavier(*stack, generator);
  const at::Tensor hidden = stack(StackInputs{.embeddings = x}).hidden;
  at::cross_entropy_loss(head(hidden).flatten(0, 1), classes).backward();
  std::vector<double> norms;
  for (std::int64_t layer = 0; layer < depth; ++layer)
    norms.push_back(stack->block(layer).feed_forward->down->weight.grad().norm().item<double>());
  return norms;
}

// Applies both kinds of norm to the same vectors, far from 0.
void print_kinds(std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = 3 + 2 * at::randn({kBatch * kLength, kWidth}, generator_of(seed));
  Table table(columns({"norm"}, {"mean", "deviation", "root mean square", "parameters"}));
  const auto row = [&](const std::string& name, const at::Tensor& y, std::int64_t parameters) {
    table.row({name, format_text("%.3f", y.mean(-1).mean().item<double>()),
               format_text("%.3f", y.std(-1, /*unbiased=*/false).mean().item<double>()),
               format_text("%.3f", y.square().mean(-1).sqrt().mean().item<double>()),
               std::to_string(parameters)});
  };
  row("none", x, 0);
  for (const NormKind kind : {NormKind::kLayerNorm, NormKind::kRmsNorm}) {
    TransformerConfig config = config_of(1, NormPlacement::kPre);
    config.norm = kind;
    Norm norm(config);
    row(std::string(name_of(kind)), norm(x), count(*norm));
  }
  print_paragraph(
      "LayerNorm takes the mean away and divides by the deviation; RMSNorm (Zhang and "
      "Sennrich, 2019) divides alone");
  table.print(std::cout);
}

}  // namespace zoo::demos::norms

void zoo::demo_norms(const Arguments& arguments) {
  using namespace demos::norms;
  DemoOptions options;
  Flags flags(arguments.command,
              "Follows the gradient through stacks of layers with pre-LN and with post-LN.");
  if (!begin_demo(flags, arguments, options)) return;

  auto headings = columns({"norm"}, {"first layer", "middle", "last layer", "last / first"});
  headings.insert(headings.begin(), number("layers"));
  Table table(headings);
  std::vector<Curve> pre, post;
  for (const std::int64_t depth : kDepths) {
    for (const NormPlacement placement : {NormPlacement::kPre, NormPlacement::kPost}) {
      const bool before = placement == NormPlacement::kPre;
      const auto norms = gradient_norms(depth, placement, options.seed());
      table.row({std::to_string(depth), before ? "pre" : "post", format_text("%.2e", norms.front()),
                 format_text("%.2e", norms[norms.size() / 2]), format_text("%.2e", norms.back()),
                 format_text("%.1f", norms.back() / norms.front())});
      (before ? pre : post)
          .push_back({std::to_string(depth) + " layers", numbers_of(at::arange(1, depth + 1)), norms});
    }
  }
  std::cout << paragraph("Norm of the gradient of the feed-forward's second matrix, at initialisation");
  table.print(std::cout);
  print_paragraph(
      "Pre: x + f(norm(x)). Post: norm(x + f(x)) (Xiong et al., 2020). See the last layer: "
      "with post-norm its gradient stays\nlarge however deep the stack is, which is why such "
      "a training needs a warm-up; with pre-norm it falls with the depth.");
  print_kinds(options.seed());
  const auto panel = [](const char* title, const std::vector<Curve>& lines) {
    return line_chart({.title = title, .x = "layer", .y = "norm of the gradient", .log_y = true}, lines);
  };
  show(options, "norms",
       grid("Gradient flow at initialisation",
            {panel("Pre-norm: x + f(norm(x))", pre), panel("Post-norm: norm(x + f(x))", post)}, 2));
}
