#include "models/layers/attention/disagreement.h"

#include <algorithm>
#include <iostream>

#include "apps/demos/demo.h"
#include "models/registry.h"

namespace zoo::demos::disagreement {

struct DisagreementFlags {
  DemoOptions demo;
  std::string sequences =
      "red fruit ?=apple,yellow fruit ?=banana,red vehicle ?=ferrari,yellow vehicle ?=bus";
  std::string test = "red vehicle ?";
  std::string penalty = "overlap";
  double weight = 0.5;
  std::int64_t heads = 2, width = 64, epochs = 300;
  double learning_rate = 0.01;
};

struct Sequences {
  WordIds ids;
  at::Tensor inputs, targets;  // [B, T], [B]
};

Sequences read_sequences(const std::string& text) {
  std::vector<Phrase> lines;
  Phrase answers;
  for (const std::string& part : split_list("sequences", text)) {
    const std::size_t equals = part.rfind('=');
    const auto answer = split_words(equals == std::string::npos ? "" : part.substr(equals + 1));
    lines.push_back(split_words(part.substr(0, equals)));
    if (answer.size() != 1 || lines.back().empty() || lines.back().size() != lines.front().size())
      throw UsageError("--sequences: expected 'WORDS=ANSWER', all with as many words, got '", part, "'");
    answers.push_back(answer[0]);
  }
  std::vector<Phrase> all = lines;
  all.push_back(answers);
  const WordIds ids(all);
  return {ids, ids.tensor(lines), ids.tensor({answers})[0]};
}

std::shared_ptr<Model> build(const DisagreementFlags& v, std::int64_t vocabulary) {
  auto [family, preset] = find_preset("tutorial-disagreement");
  TransformerConfig config = preset.config;
  config.vocab_size = config.num_labels = vocabulary;
  config.num_heads = v.heads;
  config.hidden_size = v.width;
  config.problem_type = ProblemType::kSingleLabel;
  return build_model(family, config, Head::kSequenceClassification, v.demo.seed());
}

void train(Model& model, const Sequences& data, const DisagreementFlags& v) {
  std::cout << "Training with Disagreement Penalty...\n";
  fit(model, {v.epochs, v.learning_rate}, [&](std::int64_t epoch) {
    const ModelOutput output =
        model.forward({.input_ids = data.inputs, .labels = data.targets, .output_attentions = true});
    // The attention of the last word, which alone decides the class.
    const at::Tensor last = output.attentions[0].slice(2, -1);
    const at::Tensor penalty = v.penalty == "overlap" ? head_overlap(last) : position_similarity(last);
    const at::Tensor loss = output.loss + v.weight * penalty;
    if (epoch % 50 == 0) {
      const double right = output.logits.argmax(1).eq(data.targets).to(at::kFloat).mean().item<double>();
      std::cout << "Epoch " << epoch
                << format_text(" | Loss: %.4f | Acc: %.0f%%\n", loss.item<double>(), 100 * right);
    }
    return loss;
  });
}

Figure picture(Model& model, const Sequences& data, const std::vector<std::string>& words) {
  const at::NoGradGuard no_grad;
  const ModelOutput output =
      model.forward({.input_ids = data.ids.tensor({words}), .output_attentions = true});
  std::vector<Figure> panels;
  for (std::int64_t head = 0; head < output.attentions[0].size(1); ++head) {
    const auto looks = numbers_of(output.attentions[0][0][head].select(0, -1));
    const auto most = std::max_element(looks.begin(), looks.end()) - looks.begin();
    const std::string name = "Head " + std::to_string(head);
    panels.push_back(
        bar_chart({.axes = {.title = name + " looks at '" + words[static_cast<std::size_t>(most)] + "'",
                            .x = "word",
                            .y = "attention from '" + words.back() + "'"},
                   .labels = words,
                   .values = looks,
                   .group = head % 2 == 0 ? 1 : 0,
                   .top = 1.1}));
  }
  return grid("Specialisation by a term of the loss", panels,
              static_cast<int>(std::min<std::size_t>(panels.size(), 4)));
}

}  // namespace zoo::demos::disagreement

void zoo::demo_disagreement(const Arguments& arguments) {
  using namespace demos::disagreement;
  DisagreementFlags v;
  v.demo.compute.seed = 42;
  Flags flags(arguments.command,
              "Trains attention heads with a penalty for attending to the same word, and shows what each "
              "attends to.");
  flags.add("sequences", v.sequences, "sequences to learn, such as \"red fruit ?=apple\", between commas",
            {.placeholder = "LIST"});
  flags.add("test", v.test, "sequence whose attention is drawn", {.placeholder = "WORDS"});
  flags.choice("penalty", v.penalty, {"overlap", "positions"},
               "overlap: the tutorial's sum over pairs of heads; positions: the mean of Li et al. (2018)");
  flags.add("weight", v.weight, "weight of the penalty in the loss; 0: none", at_least(0));
  flags.add("heads", v.heads, "number of heads; must divide width", between(1, 16));
  flags.add("width", v.width, "size of the embeddings", between(1, 4096));
  flags.add("epochs", v.epochs, "number of updates", at_least(1));
  flags.add("learning_rate", v.learning_rate, "learning rate of Adam", above(0));
  flags.example("tzoo demo disagreement --weight 0");
  if (!begin_demo(flags, arguments, v.demo)) return;

  if (v.width % v.heads != 0)
    throw UsageError("--width ", v.width, " is not a multiple of --heads ", v.heads);
  const Sequences data = read_sequences(v.sequences);
  const auto test = split_words(v.test);
  if (test.empty()) throw UsageError("--test: expected words, got nothing");
  static_cast<void>(data.ids.tensor({test}));
  const auto model = build(v, data.ids.size());
  train(*model, data, v);
  show(v.demo, "disagreement", picture(*model, data, test));
}
