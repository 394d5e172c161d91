#include <cctype>
#include <iostream>

#include <ATen/ops/arange.h>

#include "apps/demos/demo.h"
#include "models/registry.h"

namespace zoo::demos::ambiguous {

struct AmbiguousFlags {
  DemoOptions demo;
  std::string phrases = "fruit fly,fruit salad,iron man,iron gate";
  std::string test = "iron man";
  std::int64_t width = 8, epochs = 200;
  double learning_rate = 0.01;
};

std::vector<Phrase> read_phrases(const std::string& text) {
  std::vector<Phrase> phrases;
  for (const std::string& part : split_list("phrases", text)) {
    phrases.push_back(split_words(part));
    const std::size_t length = phrases.back().size();
    if (length < 2 || length != phrases.front().size())
      throw UsageError("--phrases: expected phrases of the same number of words, two or more, got '", part,
                       "'");
  }
  return phrases;
}

std::string capitalised(std::string word) {
  word[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(word[0])));
  return "'" + word + "'";
}

std::string first_to_second(const Phrase& phrase, const std::string& between) {
  return capitalised(phrase[0]) + between + capitalised(phrase[1]);
}

std::shared_ptr<Model> build(const AmbiguousFlags& v, std::int64_t vocabulary, std::int64_t classes) {
  auto [family, preset] = find_preset("tutorial-ambiguous");
  TransformerConfig config = preset.config;
  config.vocab_size = vocabulary;
  config.hidden_size = v.width;
  config.num_labels = classes;
  config.problem_type = ProblemType::kSingleLabel;
  return build_model(family, config, Head::kSequenceClassification, v.demo.seed());
}

Figure picture(const at::Tensor& weights, const Phrase& phrase, const std::string& text) {
  HeatMap map = weights_map("Attention weights for '" + text + "': see the first row", weights, phrase);
  map.axes.x = "key (looking at …)";
  map.axes.y = "query (word from …)";
  Figure figure = heat_map(map);
  figure.width = 640;
  figure.height = 540;
  return figure;
}

}  // namespace zoo::demos::ambiguous

void zoo::demo_ambiguous(const Arguments& arguments) {
  using namespace demos::ambiguous;
  AmbiguousFlags v;
  v.demo.compute.seed = 42;
  Flags flags(arguments.command,
              "Trains a classifier of phrases on their first word's vector, so that this word must attend to "
              "the second.");
  flags.add("phrases", v.phrases, "phrases to learn, between commas, each with a class of its own",
            {.placeholder = "LIST"});
  flags.add("test", v.test, "phrase whose attention is drawn", {.placeholder = "PHRASE"});
  flags.add("width", v.width, "size of the embeddings", between(1, 4096));
  flags.add("epochs", v.epochs, "number of updates", at_least(1));
  flags.add("learning_rate", v.learning_rate, "learning rate of Adam", above(0));
  flags.example("tzoo demo ambiguous --seed 7");
  if (!begin_demo(flags, arguments, v.demo)) return;

  const auto phrases = read_phrases(v.phrases);
  const WordIds ids(phrases);
  const Phrase test = split_words(v.test);
  if (test.size() < 2) throw UsageError("--test: expected two words or more, got '", v.test, "'");
  static_cast<void>(ids.tensor({test}));
  const at::Tensor inputs = ids.tensor(phrases), labels = at::arange(inputs.size(0), at::kLong);
  const auto model = build(v, ids.size(), inputs.size(0));

  std::cout << "Training: Teaching " << first_to_second(phrases[0], " to look at ") << "...\n";
  fit(*model, {v.epochs, v.learning_rate}, [&](std::int64_t epoch) {
    const at::Tensor loss = model->forward({.input_ids = inputs, .labels = labels}).loss;
    if (epoch % 50 == 0)
      std::cout << "Epoch " << epoch << format_text(" | Loss: %.4f\n", loss.item<double>());
    return loss;
  });
  std::cout << "\nTesting: Does " << first_to_second(test, " look at ") << "?\n";
  const at::NoGradGuard no_grad;
  const ModelOutput output = model->forward({.input_ids = ids.tensor({test}), .output_attentions = true});
  const at::Tensor weights = output.attentions[0][0][0];
  const auto to_second = weights[0][1].item<double>();
  // On standard error: the tutorial prints only the question.
  std::cout.flush();
  std::cerr << (to_second > 0.5 ? "Yes: " : "No: ") << capitalised(test[0])
            << format_text(" gives %.0f%% of its attention to ", 100 * to_second) << capitalised(test[1])
            << "\n";
  show(v.demo, "ambiguous", picture(weights, test, v.test));
}
