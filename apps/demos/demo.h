#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "apps/answers/answers.h"
#include "apps/command/arguments.h"
#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/plots/figures.h"
#include "data/base/lines.h"
#include "models/model.h"

namespace zoo {

struct DemoOptions {
  ComputeOptions compute{.device = "cpu",
                         .weights = "modules"};  // most demos are too small for other devices
  std::filesystem::path out_dir = "runs/demo";
  std::string format = "both";

  std::uint64_t seed() const { return static_cast<std::uint64_t>(compute.seed); }
};

/// After a demo's own flags, declares --out_dir, --format and the flags of verbs that compute, parses all and
/// applies --threads. False if nothing is to run. Throws Error naming a flag that demos do not support.
bool begin_demo(Flags& flags, const Arguments& arguments, DemoOptions& options);

/// Prints that a demo does so many updates, fewer than by itself.
void note_updates(std::int64_t updates);

/// The updates of a demo with --quick, too few to learn much; prints a note.
std::int64_t quick_updates();

/// Draws the figure as NAME in out_dir, as show_figure does.
inline void show(const DemoOptions& options, const std::string& name, const Figure& figure) {
  show_figure(figure, options.out_dir / name, options.format);
}

/// Prints an empty line and a paragraph (apps/command/terminal.h).
void print_paragraph(const std::string& text);

/// "a, b,c" is {"a", "b", "c"}. Throws UsageError naming the flag for a text without a word between commas.
std::vector<std::string> split_list(const std::string& flag, const std::string& text);

using Phrase = std::vector<std::string>;

/// Numbers the words of the phrases in sorted order.
class WordIds {
 public:
  explicit WordIds(const std::vector<Phrase>& phrases);

  std::int64_t size() const { return std::ssize(words_); }
  const std::string& word(std::int64_t id) const { return words_[static_cast<std::size_t>(id)]; }
  /// Throws UsageError naming the word and the nearest known word.
  std::int64_t id(const std::string& word) const;
  /// The ids of phrases of one length, [phrases, words]. Throws as id().
  at::Tensor tensor(const std::vector<Phrase>& phrases) const;

 private:
  std::vector<std::string> words_;
};

/// Adam (Kingma and Ba, 2015) with torch's defaults: `loss` gives the loss of an epoch, before its update.
/// Meanwhile standard error has a progress bar on a terminal, and a line every ten seconds in a pipe.
struct Fit {
  std::int64_t epochs = 0;
  double learning_rate = 0;
  std::int64_t warmup = 0;  // epochs up to learning_rate, from where half a cosine leads to 0; 0: no change
};
void fit(torch::nn::Module& model, const Fit& how, const std::function<at::Tensor(std::int64_t epoch)>& loss);

/// A source of random numbers on the CPU.
at::Generator generator_of(std::uint64_t seed);

/// Matrices uniform on +-sqrt(6 / (in + out)) (Glorot and Bengio, 2010), biases zero, norms one; the three
/// matrices of an attention's query, key and value each by themselves.
void draw_xavier(torch::nn::Module& module, const at::Generator& generator);

/// Number of parameters.
std::int64_t count(const torch::nn::Module& module);

/// "one thread" or "2 threads": of which the demos measure times.
std::string threads_text();

/// The curve's last number by the one before it, such as "3.9": what doubling x costs.
std::string last_growth(const Curve& curve);

/// Columns of texts, then of numbers.
std::vector<Table::Column> columns(const std::vector<std::string>& texts,
                                   const std::vector<std::string>& numbers);
/// A row of a table: numbers after its name.
std::vector<std::string> cells(const std::string& name, const std::vector<double>& numbers,
                               const char* format);

/// Weights [queries, keys] from 0 to 1, between words or, without, between positions.
HeatMap weights_map(const std::string& title, const at::Tensor& weights,
                    const std::vector<std::string>& words = {});

/// `tzoo demo`: runs one demo, or all.
int run_demo(const Arguments& arguments);

// One source file per demo: demo_embeddings is in embeddings.cpp. What else a file has is in a namespace of
// its name (demos::embeddings), since the same short names mean something else in the next.
void demo_embeddings(const Arguments& arguments);
void demo_ambiguous(const Arguments& arguments);
void demo_disagreement(const Arguments& arguments);
void demo_scaling_variance(const Arguments& arguments);
void demo_masking(const Arguments& arguments);
void demo_positions(const Arguments& arguments);
void demo_heads(const Arguments& arguments);
void demo_norms(const Arguments& arguments);
void demo_model_size(const Arguments& arguments);
void demo_feed_forwards(const Arguments& arguments);
void demo_efficient_attention(const Arguments& arguments);
void demo_rnn_vs_transformer(const Arguments& arguments);
void demo_explore_embeddings(const Arguments& arguments);
void demo_translate(const Arguments& arguments);
void demo_length_generalisation(const Arguments& arguments);
void demo_training_memory(const Arguments& arguments);

/// The tutorial's words: animals, fruits and context words.
constexpr const char* kTutorialPairs =
    "cat strolls,cat eats,cat walks,cat runs,dog runs,dog eats,dog likes,dog walks,apple fruit,apple sweet,"
    "apple kitchen,banana fruit,banana ripe,banana kitchen";

/// Pairs of words; each word predicts the other.
struct WordPairs {
  WordIds ids;
  at::Tensor inputs, targets;  // [2 * pairs, 1]
};

/// Throws UsageError naming --pairs for text that is not a pair.
WordPairs read_word_pairs(const std::string& text);

struct WordTraining {
  std::int64_t width = 2, epochs = 300;
  double learning_rate = 0.02;
  std::uint64_t seed = 123;
};

/// The trained vectors [V, width] of the tutorial's model; `on_epoch` gets each loss.
at::Tensor learn_word_vectors(const WordPairs& pairs, const WordTraining& how,
                              const std::function<void(std::int64_t epoch, double loss)>& on_epoch = {});

}  // namespace zoo
