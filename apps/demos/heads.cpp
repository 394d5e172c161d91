#include <cmath>
#include <iostream>

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>

#include "apps/demos/demo.h"
#include "apps/plots/attention_maps.h"
#include "models/layers/attention/attention.h"
#include "models/layers/attention/disagreement.h"

namespace zoo::demos::heads {

// What compute() gives while the head adds nothing to the attention's output.
template <class Compute>
auto without(SelfAttention& attention, std::int64_t head, std::int64_t heads, const Compute& compute) {
  at::Tensor part = attention->out->weight.chunk(heads, 1)[static_cast<std::size_t>(head)];
  const at::Tensor kept = part.clone();
  part.zero_();
  const auto result = compute();
  part.copy_(kept);
  return result;
}

HeadPattern pattern_of_map(const at::Tensor& map) {
  const at::Tensor whole = map.contiguous();
  const auto size = static_cast<std::size_t>(whole.numel());
  return pattern_of({whole.const_data_ptr<float>(), size}, static_cast<std::size_t>(whole.size(1)),
                    /*square=*/true);
}

// Of the trained heads.
constexpr std::int64_t kWords = 12, kLength = 10, kWidth = 64, kHeads = 2, kUpdates = 250, kBatch = 32;

// One attention layer over words with learned positions, with two outputs.
class TwoQuestions : public torch::nn::Module {
 public:
  explicit TwoQuestions(const at::Generator& generator) {
    words = register_module("words", Embedding(kWords, kWidth));
    positions = register_module("positions", Embedding(kLength, kWidth));
    attention = register_module("attention",
                                SelfAttention(TransformerConfig{.hidden_size = kWidth, .num_heads = kHeads}));
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

std::string percent(double share) { return format_text("%.0f%%", 100 * share); }

// Trains two heads to predict, at each position, the previous word and the first word; prints each head's
// attention and the loss without the head. Returns their maps on one sequence.
std::vector<Figure> trained_panels(std::uint64_t seed) {
  const at::Generator generator = generator_of(seed);
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
  Table table(columns(
      {}, {"head", "entropy, bits", "itself", "previous", "first", "the word before", "the first word"}));
  std::vector<Figure> panels;
  for (std::int64_t head = 0; head < kHeads; ++head) {
    const HeadPattern p = pattern_of_map(maps[head]);
    const auto left = without(model.attention, head, kHeads, [&] { return accuracies(model, ids); });
    auto row = cells(std::to_string(head), {p.entropy, p.itself, p.previous, p.first}, "%.3f");
    for (const double right : left) row.push_back(percent(right));
    table.row(row);
    HeatMap map = weights_map("Trained head " + std::to_string(head), maps[head]);
    map.values = false;
    map.mask_causally();
    panels.push_back(heat_map(map));
  }
  print_paragraph(
      "Trained, " + std::to_string(kUpdates) + " updates: say the word before and the first word (right: " +
      percent(whole[0]) + " and " + percent(whole[1]) +
      ").\nWhat is still right without each head, the importance of a head by ablation (by chance " +
      percent(1.0 / kWords) + ")");
  table.print(std::cout);
  return panels;
}

constexpr std::int64_t kUntrainedWidth = 128;

// Relative change of the output when this head's contribution is removed.
double importance(SelfAttention& attention, const at::Tensor& x, std::int64_t head, std::int64_t heads) {
  const auto output = [&] { return attention(x, SelfAttentionContext{}); };
  const at::Tensor whole = output(), rest = without(attention, head, heads, output);
  return ((whole - rest).norm() / whole.norm()).item<double>();
}

SelfAttention attention_of(std::int64_t heads, std::uint64_t seed) {
  SelfAttention attention(TransformerConfig{.hidden_size = kUntrainedWidth, .num_heads = heads});
  draw_xavier(*attention, generator_of(seed));
  return attention;
}

void print_heads(SelfAttention& attention, const at::Tensor& x, const at::Tensor& maps) {
  Table table(columns({}, {"head", "entropy, bits", "itself", "previous", "next", "first", "importance"}));
  for (std::int64_t head = 0; head < maps.size(1); ++head) {
    const HeadPattern p = pattern_of_map(maps[0][head]);
    table.row(cells(
        std::to_string(head),
        {p.entropy, p.itself, p.previous, p.next, p.first, importance(attention, x, head, maps.size(1))},
        "%.3f"));
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
    std::cout << paragraph(line);
  }
}

}  // namespace zoo::demos::heads

void zoo::demo_heads(const Arguments& arguments) {
  using namespace demos::heads;
  DemoOptions options;
  Flags flags(arguments.command, "Splits the same attention into 1, 8 and 16 heads and measures each head.");
  std::string text = "The cat sat on the mat";
  flags.add("text", text, "the words that attend to one another");
  if (!begin_demo(flags, arguments, options)) return;

  const auto words = split_words(text);
  if (words.size() < 2 || words.size() > 64)
    throw UsageError("--text: expected 2 to 64 words, got ", words.size());
  const at::NoGradGuard no_grad;
  const std::uint64_t seed = options.seed();
  const auto length = std::ssize(words);
  // Inputs of deviation 2 give untrained heads preferences; the text below tells.
  const at::Tensor x = 2 * at::randn({1, length, kUntrainedWidth}, generator_of(seed));
  Table table(columns({}, {"heads", "D", "parameters", "mean entropy, bits", "similarity of the heads"}));
  at::Tensor shown;
  for (const std::int64_t heads : {1, 8, 16}) {
    SelfAttention attention = attention_of(heads, seed);
    at::Tensor maps;
    attention(x, SelfAttentionContext{.weights = &maps});
    double entropy = 0;
    for (std::int64_t head = 0; head < heads; ++head) entropy += pattern_of_map(maps[0][head]).entropy;
    table.row({std::to_string(heads), std::to_string(kUntrainedWidth / heads),
               with_separators(count(*attention)), format_text("%.3f", entropy / static_cast<double>(heads)),
               format_text("%.3f", position_similarity(maps).item<double>())});
    if (heads == 8) shown = maps;
  }
  table.print(std::cout);
  SelfAttention eight = attention_of(8, seed);
  print_heads(eight, x, shown);
  print_most(shown, words);
  print_paragraph("More heads cost no parameters: each sees " + std::to_string(kUntrainedWidth) +
                  " / H dimensions. Untrained heads differ by chance only;\nthat they prefer anything "
                  "comes from the vectors of the words, drawn with deviation 2. The most even spread\nover " +
                  std::to_string(length) + " words has " +
                  format_text("%.3f", std::log2(static_cast<double>(length))) + " bits.");
  std::vector<Figure> panels;
  for (std::int64_t head = 0; head < 4; ++head) {
    HeatMap map = weights_map("Untrained head " + std::to_string(head), shown[0][head], words);
    map.values = words.size() <= 12;
    panels.push_back(heat_map(map));
  }
  for (Figure& panel : trained_panels(seed)) panels.push_back(std::move(panel));
  show(options, "heads",
       grid("Four of eight untrained heads on one sentence, and two trained ones", panels, 3));
}
