#include <cmath>
#include <cstdint>
#include <iostream>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>

#include "apps/demos/demo.h"
#include "apps/plots/attention_maps.h"
#include "apps/plots/figures.h"
#include "models/layers/attention/attention.h"
#include "models/layers/attention/disagreement.h"

namespace zoo::demos::trained_heads {

constexpr std::int64_t kWords = 12, kLength = 10, kWidth = 64, kHeads = 2, kUpdates = 250, kBatch = 32;

// One attention layer over words with learned positions, with two outputs.
class TwoQuestions : public torch::nn::Module {
 public:
  explicit TwoQuestions(const at::Generator& generator) {
    TransformerConfig config;
    config.hidden_size = kWidth;
    config.num_heads = kHeads;
    words = register_module("words", Embedding(kWords, kWidth));
    positions = register_module("positions", Embedding(kLength, kWidth));
    attention = register_module("attention", SelfAttention(config));
    answers = register_module("answers", Linear(kWidth, 2 * kWords));
    draw_xavier(*this, generator);
    const at::NoGradGuard no_grad;
    words->weight.normal_(0.0, 1.0, generator);
    positions->weight.normal_(0.0, 1.0, generator);
  }

  /// [B, T, 2, words], and the weights [B, H, T, T].
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& ids) {
    const at::Tensor x = words->forward(ids) + positions->weight;
    at::Tensor weights;
    const at::Tensor attended =
        attention(x, SelfAttentionContext{.mask = {.causal = true}, .weights = &weights});
    return {answers(attended).unflatten(-1, {2, kWords}), weights};
  }

  Embedding words{nullptr}, positions{nullptr};
  SelfAttention attention{nullptr};
  Linear answers{nullptr};
};

at::Tensor draw_words(std::int64_t rows, const at::Generator& generator) {
  return at::randint(kWords, {rows, kLength}, generator, at::kLong);
}

// From the second position on: the previous word and the first word. [B, T - 1, 2]
at::Tensor right_answers(const at::Tensor& ids) {
  const at::Tensor before = ids.slice(1, 0, -1);
  return at::stack({before, ids.slice(1, 0, 1).expand_as(before)}, -1);
}

// Accuracy on each question.
std::vector<double> accuracies(TwoQuestions& model, const at::Tensor& ids) {
  const at::Tensor said = model.forward(ids).first.slice(1, 1).argmax(-1);
  return numbers_of(said.eq(right_answers(ids)).to(at::kFloat).mean(at::IntArrayRef({0, 1})));
}

std::vector<double> accuracies_without(TwoQuestions& model, std::int64_t head, const at::Tensor& ids) {
  const std::int64_t size = kWidth / kHeads;
  at::Tensor part = model.attention->out->weight.slice(1, head * size, (head + 1) * size);
  const at::Tensor kept = part.clone();
  part.zero_();
  const auto found = accuracies(model, ids);
  part.copy_(kept);
  return found;
}

std::string percent(double share) { return format_text("%.0f%%", 100 * share); }

// Trains two heads to predict, at each position, the previous word and the first word; prints each head's
// attention and the loss without the head. Returns their maps on one sequence.
std::vector<Figure> show(std::uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  TwoQuestions model(generator);
  {
    const at::AutoGradMode record(true);
    fit(model, {kUpdates, 0.005}, [&](std::int64_t) {
      const at::Tensor ids = draw_words(kBatch, generator);
      return at::cross_entropy_loss(model.forward(ids).first.slice(1, 1).flatten(0, 2),
                                    right_answers(ids).flatten());
    });
  }
  const at::NoGradGuard no_grad;
  const at::Tensor ids = draw_words(256, generator);
  const auto whole = accuracies(model, ids);
  const at::Tensor maps = model.forward(ids).second.mean(0).contiguous();  // [H, T, T], over all sequences
  Table table({number("head"), number("entropy, bits"), number("itself"), number("previous"), number("first"),
               number("the word before"), number("the first word")});
  std::vector<Figure> panels;
  for (std::int64_t head = 0; head < kHeads; ++head) {
    const float* data = maps[head].const_data_ptr<float>();
    const HeadPattern p =
        pattern_of({data, static_cast<std::size_t>(kLength * kLength)}, kLength, /*square=*/true);
    const auto left = accuracies_without(model, head, ids);
    table.row({std::to_string(head), format_text("%.3f", p.entropy), format_text("%.3f", p.itself),
               format_text("%.3f", p.previous), format_text("%.3f", p.first), percent(left[0]),
               percent(left[1])});
    HeatMap map{.axes = {.title = "Trained head " + std::to_string(head), .x = "key", .y = "query"},
                .cells = matrix_of(maps[head]),
                .values = false,
                .low = 0,
                .high = 1};
    map.mask_causally();
    panels.push_back(heat_map(map));
  }
  print_paragraph("Trained, " + std::to_string(kUpdates) +
                  " updates: say the word before and the first word (right: " + percent(whole[0]) + " and " +
                  percent(whole[1]) +
                  ").\nWhat is still right without each head, the importance of a head by ablation (by "
                  "chance " +
                  percent(1.0 / kWords) + ")");
  table.print(std::cout);
  return panels;
}

}  // namespace zoo::demos::trained_heads

namespace zoo::demos::heads {

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
  print_paragraph("The " + std::to_string(maps.size(1)) +
                  " heads: mean attention to itself, its neighbours and the first word; what the output "
                  "loses without the head");
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

}  // namespace zoo::demos::heads

int zoo::demo_heads(const Arguments& arguments) {
  using namespace demos::heads;
  DemoOptions options;
  Flags flags(arguments.command, "Splits the same attention into 1, 8 and 16 heads and measures each head.");
  std::string text = "The cat sat on the mat";
  flags.add("text", text, "the words that attend to one another");
  if (!begin_demo(flags, arguments, options)) return 0;

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
  print_paragraph("More heads cost no parameters: each sees " + std::to_string(kWidth) +
                  " / H dimensions. Untrained heads differ by chance only;\nthat they prefer anything "
                  "comes from the vectors of the words, drawn with deviation 2. The most even spread\nover " +
                  std::to_string(length) + " words has " +
                  format_text("%.3f", std::log2(static_cast<double>(length))) + " bits.");
  std::vector<Figure> panels;
  for (std::int64_t head = 0; head < 4; ++head)
    panels.push_back(
        heat_map({.axes = {.title = "Untrained head " + std::to_string(head), .x = "key", .y = "query"},
                  .rows = words,
                  .columns = words,
                  .cells = matrix_of(shown[0][head]),
                  .values = words.size() <= 12,
                  .low = 0,
                  .high = 1}));
  for (Figure& panel : demos::trained_heads::show(seed)) panels.push_back(std::move(panel));
  show(options, "heads",
       grid("Four of eight untrained heads on one sentence, and two trained ones", panels, 3));
  return 0;
}
