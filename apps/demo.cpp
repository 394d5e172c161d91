#include <algorithm>
#include <array>
#include <iostream>
#include <string_view>

#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/command/terminal.h"
#include "apps/demos/demos.h"
#include "apps/pictures.h"
#include "apps/verbs.h"
#include "data/base/error.h"
#include "data/base/near_match.h"

namespace zoo {
namespace {

constexpr std::array kDemos{
    Verb{"embeddings", "Demos", "words with the same company get the same vector", demo_embeddings},
    Verb{"ambiguous", "Demos", "a first word that must look at the second to know its meaning",
         demo_ambiguous},
    Verb{"disagreement", "Demos", "two heads, kept from looking at the same word by the loss",
         demo_disagreement},
    Verb{"scaling-variance", "Demos", "why attention divides its scores by the root of their dimension",
         demo_scaling_variance},
    Verb{"masking", "Demos", "what causal and padding masks hide, and where NaN comes from", demo_masking},
    Verb{"positions", "Demos", "six kinds of positions: what they promise, proven", demo_positions},
    Verb{"heads", "Demos", "the same attention in 1, 8 and 16 heads, each head measured", demo_heads},
    Verb{"norms", "Demos", "the gradient through 6 to 48 layers, norms before or behind", demo_norms},
    Verb{"model-size", "Demos", "parameters and training memory of known models", demo_model_size},
    Verb{"feed-forwards", "Demos", "feed-forward variants with equal parameters on one task",
         demo_feed_forwards},
    Verb{"efficient-attention", "Demos", "windows, strides, sums and mixtures beside full attention",
         demo_efficient_attention},
    Verb{"rnn-vs-transformer", "Demos", "an LSTM beside a transformer: time, and a word to remember",
         demo_rnn_vs_transformer},
    Verb{"explore-embeddings", "Demos", "nearest neighbours and analogies, of a model's words too",
         demo_explore_embeddings},
    Verb{"translate", "Demos", "a T5 that learns to translate, asked pairs of words that never met",
         demo_translate},
    Verb{"length-generalisation", "Demos",
         "decoders with each kind of positions, asked longer tasks than they learnt",
         demo_length_generalisation},
    Verb{"training-memory", "Demos", "one gradient in pieces, in 16 bits, with activations computed again",
         demo_training_memory},
};

// A demo that learns for long, and the updates that it does among all others; 0: as by itself.
struct Learner {
  std::string_view demo;
  std::int64_t updates;
};

constexpr std::array kLearners{Learner{"translate", 0}, Learner{"length-generalisation", 600}};
constexpr std::int64_t kQuickUpdates = 4;

// The flags of a demo among all others, of which those say so that do less than by themselves.
std::vector<std::string> shortened(std::string_view demo, bool quick) {
  const auto learner =
      std::find_if(kLearners.begin(), kLearners.end(), [&](const Learner& one) { return one.demo == demo; });
  const std::int64_t updates = learner == kLearners.end() ? 0 : quick ? kQuickUpdates : learner->updates;
  if (updates == 0) return {};
  std::cout << "(" << updates << " updates here: by itself this demo does more, and learns more)\n"
            << std::flush;
  return {"--updates", std::to_string(updates)};
}

int list(const Arguments& arguments) {
  Flags flags(arguments.command, "Lists the demos.");
  if (!flags.parse(arguments)) return 0;
  Table table({{"demo"}, {"what it shows"}});
  for (const Verb& demo : kDemos) table.row({std::string(demo.name), std::string(demo.summary)});
  table.print(std::cout, standard_output_width());
  return 0;
}

// One demo that fails does not keep the others from running.
int run_all(const Arguments& arguments) {
  std::filesystem::path out_dir = "runs/demo";
  std::string format = "both";
  bool quick = false;
  Flags flags(arguments.command, "Runs every demo, one after the other.");
  flags.add("out_dir", out_dir, "where the pictures go").placeholder("DIR");
  flags.add("quick", quick,
            "let those that learn for long do a few updates only, and show how little that is");
  add_format_flag(flags, format);
  flags.example("tzoo demo all --out_dir runs/demo");
  if (!flags.parse(arguments)) return 0;
  std::string faults;
  for (const Verb& demo : kDemos) {
    const std::string name(demo.name);
    std::cout << (&demo == kDemos.data() ? "" : "\n") << "# tzoo demo " << name << "\n" << std::flush;
    std::vector<std::string> words{"--out_dir", out_dir.string(), "--format", format};
    for (std::string& word : shortened(demo.name, quick)) words.push_back(std::move(word));
    try {
      demo.run({"tzoo demo " + name, words});
    } catch (const Error& error) {
      faults += (faults.empty() ? "" : "\n") + name + ": " + error.what();
    }
  }
  if (!faults.empty()) throw Error(faults);
  return 0;
}

}  // namespace

int run_demo(const Arguments& arguments) {
  std::vector<Verb> verbs{{"list", "Actions", "every demo, a line each", list},
                          {"all", "Actions", "run them all", run_all}};
  verbs.insert(verbs.end(), kDemos.begin(), kDemos.end());
  return dispatch(arguments, "Shows what the tutorials explain: numbers and pictures.", verbs);
}

}  // namespace zoo
