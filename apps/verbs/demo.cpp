#include <algorithm>
#include <array>
#include <iostream>
#include <string_view>

#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/command/terminal.h"
#include "apps/demos/demos.h"
#include "apps/verbs/pictures.h"
#include "apps/verbs/verbs.h"
#include "data/base/error.h"
#include "data/base/near_match.h"

namespace zoo {
namespace {

constexpr std::array kDemos{
    Verb{"embeddings", "Demos", "words that occur in the same company get the same vector", demo_embeddings},
    Verb{"ambiguous", "Demos", "an ambiguous word that must attend to the next one to know its meaning",
         demo_ambiguous},
    Verb{"disagreement", "Demos", "two heads that the loss keeps from attending to the same word",
         demo_disagreement},
    Verb{"scaling-variance", "Demos", "why attention divides its scores by the root of their dimension",
         demo_scaling_variance},
    Verb{"masking", "Demos", "what causal and padding masks hide, and where NaN comes from", demo_masking},
    Verb{"positions", "Demos", "six position encodings and proofs of their properties", demo_positions},
    Verb{"heads", "Demos", "the same attention with 1, 8 and 16 heads, each head measured", demo_heads},
    Verb{"norms", "Demos", "the gradient through 6 to 48 layers, pre-LN and post-LN", demo_norms},
    Verb{"model-size", "Demos", "parameters and training memory of known models", demo_model_size},
    Verb{"feed-forwards", "Demos", "feed-forward variants with equal parameters on one task",
         demo_feed_forwards},
    Verb{"efficient-attention", "Demos", "sparse, linear and low-rank attention compared with full attention",
         demo_efficient_attention},
    Verb{"rnn-vs-transformer", "Demos", "an LSTM compared with a transformer: speed, and remembering a word",
         demo_rnn_vs_transformer},
    Verb{"explore-embeddings", "Demos", "nearest neighbours and analogies of words, also in a checkpoint",
         demo_explore_embeddings},
    Verb{"translate", "Demos", "a small T5 learns to translate, tested on unseen pairs of words",
         demo_translate},
    Verb{"length-generalisation", "Demos", "position encodings tested on longer tasks than those in training",
         demo_length_generalisation},
    Verb{"training-memory", "Demos", "gradient accumulation, bfloat16 and gradient checkpointing compared",
         demo_training_memory},
};

// A demo with long training, and its number of updates in `demo all`; 0: the demo's own default.
struct Learner {
  std::string_view demo;
  std::int64_t updates;
};

constexpr std::array kLearners{Learner{"translate", 0}, Learner{"length-generalisation", 600}};
constexpr std::int64_t kQuickUpdates = 4;

// Flags of a demo in `demo all`; prints a note if it trains for fewer updates than usual.
std::vector<std::string> shortened(std::string_view demo, bool quick) {
  const auto learner =
      std::find_if(kLearners.begin(), kLearners.end(), [&](const Learner& one) { return one.demo == demo; });
  const std::int64_t updates = learner == kLearners.end() ? 0 : quick ? kQuickUpdates : learner->updates;
  if (updates == 0) return {};
  std::cout << "(" << updates << " updates here: by itself this demo does more, and learns more)\n"
            << std::flush;
  return {"--updates", std::to_string(updates)};
}

int list_demos(const Arguments& arguments) {
  Flags flags(arguments.command, "Lists the demos.");
  if (!flags.parse(arguments)) return 0;
  Table table({{"demo"}, {"what it shows"}});
  for (const Verb& demo : kDemos) table.row({std::string(demo.name), std::string(demo.summary)});
  table.print(std::cout);
  return 0;
}

// If one demo fails, the others still run.
int run_all(const Arguments& arguments) {
  std::filesystem::path out_dir = "runs/demo";
  std::string format = "both";
  bool quick = false;
  Flags flags(arguments.command, "Runs every demo in turn.");
  flags.add("out_dir", out_dir, "directory for the pictures").placeholder("DIR");
  flags.add("quick", quick, "let the demos that train for long do only a few updates, too few to learn much");
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
  std::vector<Verb> verbs{{"list", "Actions", "list the demos", list_demos},
                          {"all", "Actions", "run every demo", run_all}};
  verbs.insert(verbs.end(), kDemos.begin(), kDemos.end());
  return dispatch(arguments, "Shows what the tutorials explain, in numbers and pictures.", verbs);
}

}  // namespace zoo
