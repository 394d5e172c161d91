#include <iostream>

#include <ATen/ops/cosine_similarity.h>

#include "apps/demos/demo.h"

namespace zoo::demos::embeddings {

struct EmbeddingsFlags {
  DemoOptions demo;
  std::string pairs = kTutorialPairs;
  std::string words = "cat,dog,apple,banana";
  WordTraining training;
};

void print_vectors(const at::Tensor& table, const WordIds& ids, const std::vector<std::string>& words) {
  const std::string rule(40, '=');
  std::cout << "\n" << rule << "\n     NUMERICAL PROOF\n" << rule << "\n";
  std::cout << "\n[A] Raw Vector Values (" << table.size(1) << " Dimensions):\n";
  for (const std::string& word : words) {
    std::cout << format_text("  %-10s: [", word.c_str());
    const auto numbers = numbers_of(table.select(0, ids.id(word)));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      std::cout << (i > 0 ? ", " : "") << format_text("%.4f", numbers[i]);
    std::cout << "]\n";
  }
}

void print_similarities(const at::Tensor& table, const WordIds& ids, const std::vector<std::string>& words) {
  std::cout << "\n[B] Cosine Similarity (1.0 = Same, -1.0 = Opposite):\n";
  const auto print = [&](const std::string& a, const std::string& b) {
    const at::Tensor cosine =
        at::cosine_similarity(table.select(0, ids.id(a)), table.select(0, ids.id(b)), /*dim=*/0);
    std::cout << "  " << a << " <-> " << b << format_text(": %.4f\n", cosine.item<double>());
  };
  // First the pairs that belong together, then two words of different pairs.
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) print(words[i], words[i + 1]);
  if (words.size() > 2) print(words[0], words[2]);
}

Figure picture(const at::Tensor& table, const WordIds& ids, const std::vector<std::string>& words) {
  std::vector<std::string> groups{"", "", "other words of the pairs"};
  for (std::size_t i = 0; i < std::min<std::size_t>(words.size(), 4); ++i)
    groups[i / 2] += (i % 2 == 1 ? ", " : "") + words[i];
  if (words.size() > 4) groups.push_back("other words shown");
  std::vector<WordPoint> points;
  for (std::int64_t id = 0; id < ids.size(); ++id) {
    int group = 2;  // context words
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i] == ids.word(id)) group = i < 2 ? 0 : i < 4 ? 1 : 3;
    const auto place = numbers_of(table.select(0, id));
    points.push_back({place[0], place.size() > 1 ? place[1] : 0, ids.word(id), group});
  }
  return word_scatter({.title = "Learned embeddings: words with the same company stand together",
                       .x = "dimension 1",
                       .y = "dimension 2",
                       .groups = groups},
                      points);
}

}  // namespace zoo::demos::embeddings

void zoo::demo_embeddings(const Arguments& arguments) {
  using namespace demos::embeddings;
  EmbeddingsFlags v;
  v.demo.compute.seed = 123;
  Flags flags(arguments.command,
              "Learns word vectors from pairs of words that occur together, and compares the vectors.");
  flags.add("pairs", v.pairs, "pairs of words that occur together, such as \"cat runs,dog runs\"",
            {.placeholder = "LIST"});
  flags.add("words", v.words, "words whose vectors are shown; each two of them belong together",
            {.placeholder = "LIST"});
  flags.add("width", v.training.width, "size of the vectors; the picture shows the first two dimensions",
            between(1, 4096));
  flags.add("epochs", v.training.epochs, "number of updates", at_least(1));
  flags.add("learning_rate", v.training.learning_rate, "learning rate of Adam", above(0));
  flags.example("tzoo demo embeddings --seed 7");
  if (!begin_demo(flags, arguments, v.demo)) return;

  const WordPairs data = read_word_pairs(v.pairs);
  const auto words = split_list("words", v.words);
  for (const std::string& word : words) static_cast<void>(data.ids.id(word));

  std::cout << "Training...\n";
  v.training.seed = v.demo.seed();
  const at::Tensor table = learn_word_vectors(data, v.training, [](std::int64_t epoch, double loss) {
    if (epoch % 100 == 0) std::cout << "Epoch " << epoch << format_text(": Loss %.4f\n", loss);
  });
  print_vectors(table, data.ids, words);
  print_similarities(table, data.ids, words);
  show(v.demo, "embeddings", picture(table, data.ids, words));
}
