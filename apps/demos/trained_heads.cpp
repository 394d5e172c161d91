#include "apps/demos/trained_heads.h"

#include <iostream>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/stack.h>

#include "apps/command/output.h"
#include "apps/command/terminal.h"
#include "apps/demos/demo.h"
#include "apps/plots/attention_maps.h"
#include "models/layers/attention/attention.h"

namespace zoo {
namespace demos::trained_heads {

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

std::string percent(double share) {
  return format_text("%.0f%%", 100 * share);
}

}  // namespace demos::trained_heads

std::vector<Figure> show_trained_heads(std::uint64_t seed) {
  using namespace demos::trained_heads;
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
  std::cout << "\n"
            << paragraph(
                   "Trained, " + std::to_string(kUpdates) +
                   " updates: say the word before and the first word (right: " + percent(whole[0]) + " and " +
                   percent(whole[1]) +
                   ").\nWhat is still right without each head, the importance of a head by ablation (by "
                   "chance " +
                   percent(1.0 / kWords) + ")")
            << "\n";
  table.print(std::cout);
  return panels;
}

}  // namespace zoo
