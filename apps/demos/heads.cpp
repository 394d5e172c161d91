#include <cmath>
#include <iostream>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randn.h>

#include "apps/command/output.h"
#include "apps/command/terminal.h"
#include "apps/demos/demo.h"
#include "apps/demos/demos.h"
#include "apps/demos/trained_heads.h"
#include "apps/plots/attention_maps.h"
#include "models/layers/attention/attention.h"
#include "models/layers/attention/disagreement.h"

namespace zoo {
namespace demos::heads {

constexpr std::int64_t kWidth = 128;

TransformerConfig config_of(std::int64_t heads) {
  TransformerConfig config;
  config.hidden_size = kWidth;
  config.num_heads = heads;
  return config;
}

HeadPattern pattern_of_map(const at::Tensor& map) {
  const at::Tensor whole = map.contiguous();
  const auto size = static_cast<std::size_t>(whole.numel());
  return pattern_of({whole.const_data_ptr<float>(), size}, static_cast<std::size_t>(whole.size(1)),
                    /*square=*/true);
}

// Relative change of the output when this head's contribution is removed.
double importance(SelfAttention& attention, const at::Tensor& x, std::int64_t head, std::int64_t heads) {
  const std::int64_t size = kWidth / heads;
  const at::Tensor whole = attention(x, SelfAttentionContext{});
  at::Tensor part = attention->out->weight.slice(1, head * size, (head + 1) * size);
  const at::Tensor kept = part.clone();
  part.zero_();
  const at::Tensor without = attention(x, SelfAttentionContext{});
  part.copy_(kept);
  return ((whole - without).norm() / whole.norm()).item<double>();
}

SelfAttention attention_of(std::int64_t heads, std::uint64_t seed) {
  SelfAttention attention(config_of(heads));
  draw_xavier(*attention, at::detail::createCPUGenerator(seed));
  return attention;
}

void print_heads(SelfAttention& attention, const at::Tensor& x, const at::Tensor& maps) {
  Table table({number("head"), number("entropy, bits"), number("itself"), number("previous"), number("next"),
               number("first"), number("importance")});
  for (std::int64_t head = 0; head < maps.size(1); ++head) {
    const HeadPattern p = pattern_of_map(maps[0][head]);
    table.row({std::to_string(head), format_text("%.3f", p.entropy), format_text("%.3f", p.itself),
               format_text("%.3f", p.previous), format_text("%.3f", p.next), format_text("%.3f", p.first),
               format_text("%.3f", importance(attention, x, head, maps.size(1)))});
  }
  std::cout << "\n"
            << paragraph(
                   "The " + std::to_string(maps.size(1)) +
                   " heads: mean attention to itself, its neighbours and the first word; what the output "
                   "loses without the head")
            << "\n";
  table.print(std::cout);
}

void print_most(const at::Tensor& maps, const std::vector<std::string>& words) {
  std::cout << "\n";
  for (std::int64_t head = 0; head < 2; ++head) {
    std::string line = "head " + std::to_string(head) + ":";
    for (std::size_t i = 0; i < words.size(); ++i) {
      const at::Tensor row = maps[0][head][static_cast<std::int64_t>(i)];
      const auto most = static_cast<std::size_t>(row.argmax().item<std::int64_t>());
      line += (i > 0 ? ", " : " ") + words[i] + " → " + words[most];
    }
    std::cout << paragraph(line) << "\n";
  }
}

}  // namespace demos::heads

int demo_heads(const Arguments& arguments) {
  using namespace demos::heads;
  DemoOptions options;
  Flags flags(arguments.command, "Splits the same attention into 1, 8 and 16 heads and measures each head.");
  std::string text = "The cat sat on the mat";
  flags.add("text", text, "the words that attend to one another");
  add_demo_flags(flags, options);
  if (!flags.parse(arguments)) return 0;
  begin_demo(options);

  const auto words = split_words(text);
  if (words.size() < 2 || words.size() > 64)
    throw UsageError("--text: expected 2 to 64 words, got ", words.size());
  const at::NoGradGuard no_grad;
  const auto seed = static_cast<std::uint64_t>(options.compute.seed);
  const auto length = static_cast<std::int64_t>(words.size());
  // Inputs of deviation 2 give untrained heads preferences; the text below tells.
  const at::Tensor x = 2 * at::randn({1, length, kWidth}, at::detail::createCPUGenerator(seed));
  Table table({number("heads"), number("D"), number("parameters"), number("mean entropy, bits"),
               number("similarity of the heads")});
  at::Tensor shown;
  for (const std::int64_t heads : {1, 8, 16}) {
    SelfAttention attention = attention_of(heads, seed);
    at::Tensor maps;
    attention(x, SelfAttentionContext{.weights = &maps});
    std::int64_t count = 0;
    for (const auto& parameter : attention->parameters()) count += parameter.numel();
    double entropy = 0;
    for (std::int64_t head = 0; head < heads; ++head) entropy += pattern_of_map(maps[0][head]).entropy;
    table.row({std::to_string(heads), std::to_string(kWidth / heads), with_separators(count),
               format_text("%.3f", entropy / static_cast<double>(heads)),
               format_text("%.3f", position_similarity(maps).item<double>())});
    if (heads == 8) shown = maps;
  }
  table.print(std::cout);
  SelfAttention eight = attention_of(8, seed);
  print_heads(eight, x, shown);
  print_most(shown, words);
  std::cout
      << "\n"
      << paragraph(
             "More heads cost no parameters: each sees " + std::to_string(kWidth) +
             " / H dimensions. Untrained heads differ by chance only;\nthat they prefer anything "
             "comes from the vectors of the words, drawn with deviation 2. The most even spread\nover " +
             std::to_string(length) + " words has " +
             format_text("%.3f", std::log2(static_cast<double>(length))) + " bits.")
      << "\n";
  std::vector<Figure> panels;
  for (std::int64_t head = 0; head < 4; ++head) {
    panels.push_back(
        heat_map({.axes = {.title = "Untrained head " + std::to_string(head), .x = "key", .y = "query"},
                  .rows = words,
                  .columns = words,
                  .cells = matrix_of(shown[0][head]),
                  .values = words.size() <= 12,
                  .low = 0,
                  .high = 1}));
  }
  for (Figure& panel : show_trained_heads(seed)) panels.push_back(std::move(panel));
  show(options, "heads",
       grid("Four of eight untrained heads on one sentence, and two trained ones", panels, 3));
  return 0;
}

}  // namespace zoo
