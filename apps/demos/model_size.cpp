#include <iostream>

#include "apps/demos/demo.h"
#include "models/registry.h"

namespace zoo::demos::model_size {

constexpr const char* kModels[] = {"gpt2", "bert-base-uncased", "t5-small", "t5-base", "gpt3"};

// The tutorial's count: embeddings, four projections, a feed-forward of four times the width, two norms.
std::int64_t tutorial_count(const TransformerConfig& c) {
  const std::int64_t width = c.hidden_size;
  return c.vocab_size * width + c.num_layers * (4 * width * width + 8 * width * width + 4 * width);
}

// Activation memory of a layer for one sequence in 16 bits (Korthikanti et al., 2022, equation 1).
double activation_bytes(const TransformerConfig& c, std::int64_t length) {
  const auto s = static_cast<double>(length), h = static_cast<double>(c.hidden_size);
  const auto layers = static_cast<double>(c.num_layers);
  return layers * s * h * (34 + 5 * static_cast<double>(c.num_heads) * s / h);
}

Figure shares(const std::string& name, const Model& model) {
  BarChart chart{.axes = {.title = name + ": " + human_count(model.parameter_count()) + " parameters",
                          .x = "component",
                          .y = "% of the parameters"},
                 .top = 100,
                 .unit = "%"};
  for (const auto& [part, count] : model.components()) {
    if (count == 0) continue;
    chart.labels.push_back(part);
    chart.values.push_back(100.0 * static_cast<double>(count) / static_cast<double>(model.parameter_count()));
  }
  return bar_chart(chart);
}

std::string bytes(double count) { return human_bytes(static_cast<std::int64_t>(count)); }

}  // namespace zoo::demos::model_size

void zoo::demo_model_size(const Arguments& arguments) {
  using namespace demos::model_size;
  DemoOptions options;
  Flags flags(arguments.command, "Counts the parameters of known models, and the memory to train them.");
  if (!begin_demo(flags, arguments, options)) return;

  Table sizes(columns({"model"},
                      {"layers", "heads", "width", "feed-forward", "parameters", "the tutorial's formula"}));
  auto parts = columns({"model"}, {"weights", "gradients", "Adam", "together", "activations"});
  parts.push_back({"of a sequence of"});
  Table memory(parts);
  std::vector<Figure> panels;
  for (const std::string name : kModels) {
    const auto [family, preset] = find_preset(name);
    const TransformerConfig& config = preset.config;
    const auto model = build_meta_model(family, config, family.heads.front().head);
    const std::int64_t count = model->parameter_count();
    // The formula covers one kind of block; an encoder-decoder has two.
    const bool one_stack = config.shape != Shape::kEncoderDecoder;
    sizes.row({name, std::to_string(config.num_layers), std::to_string(config.num_heads),
               std::to_string(config.hidden_size), std::to_string(config.feed_forward_size()),
               with_separators(count), one_stack ? with_separators(tutorial_count(config)) : "-"});
    const auto four = 4.0 * static_cast<double>(count);
    memory.row({name, bytes(four), bytes(four), bytes(2 * four), bytes(4 * four),
                one_stack ? bytes(activation_bytes(config, config.max_positions)) : "-",
                one_stack ? std::to_string(config.max_positions) + " tokens" : ""});
    if (name != std::string("t5-base")) panels.push_back(shares(name, *model));
  }
  sizes.print(std::cout);
  std::cout << "\nMemory of a training in float32; activations in 16 bits without recomputation\n";
  memory.print(std::cout);
  print_paragraph(
      "In small models the vocabulary's table is a tenth to a third of all parameters, in GPT-3 less "
      "than half a percent;\ntraining takes four times the memory of the weights before the first "
      "activation is stored.");
  show(options, "model-size", grid("Where the parameters are", panels, 2));
}
