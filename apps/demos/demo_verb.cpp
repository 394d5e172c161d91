#include <array>
#include <iostream>
#include <string_view>

#include "apps/command/flags.h"
#include "apps/command/verbs.h"
#include "apps/demos/demo.h"
#include "apps/plots/pictures.h"
#include "data/base/error.h"

namespace zoo {
namespace {

struct Demo {
  Verb verb;
  std::string_view takes = "<1 s";  // on two cores of 2023
  bool quick = false;               // knows --quick
  std::int64_t updates_in_all = 0;  // where its own default takes too long among others
};

constexpr std::array kDemos{
    Demo{
        {"embeddings", "Demos", "words that occur in the same company get the same vector", demo_embeddings}},
    Demo{{"ambiguous", "Demos", "an ambiguous word that must attend to the next one to know its meaning",
          demo_ambiguous}},
    Demo{{"disagreement", "Demos", "two heads that the loss keeps from attending to the same word",
          demo_disagreement}},
    Demo{{"scaling-variance", "Demos", "why attention divides its scores by the root of their dimension",
          demo_scaling_variance}},
    Demo{{"masking", "Demos", "what causal and padding masks hide, and where NaN comes from", demo_masking}},
    Demo{{"positions", "Demos", "six position encodings and proofs of their properties", demo_positions}},
    Demo{{"heads", "Demos", "the same attention with 1, 8 and 16 heads, each head measured", demo_heads}},
    Demo{{"norms", "Demos", "the gradient through 6 to 48 layers, pre-LN and post-LN", demo_norms}},
    Demo{{"model-size", "Demos", "parameters and training memory of known models", demo_model_size}},
    Demo{{"feed-forwards", "Demos", "feed-forward variants with equal parameters on one task",
          demo_feed_forwards},
         "2 s"},
    Demo{{"efficient-attention", "Demos",
          "sparse, linear and low-rank attention compared with full attention", demo_efficient_attention},
         "5 s"},
    Demo{{"rnn-vs-transformer", "Demos", "an LSTM compared with a transformer: speed, and remembering a word",
          demo_rnn_vs_transformer},
         "4 s"},
    Demo{{"explore-embeddings", "Demos", "nearest neighbours and analogies of words, also in a checkpoint",
          demo_explore_embeddings}},
    Demo{{"translate", "Demos", "a small T5 learns to translate, tested on unseen pairs of words",
          demo_translate},
         "1 min",
         true},
    Demo{{"length-generalisation", "Demos",
          "position encodings tested on longer tasks than those in training", demo_length_generalisation},
         "4 min",
         true,
         600},
    Demo{{"training-memory", "Demos", "gradient accumulation, bfloat16 and gradient checkpointing compared",
          demo_training_memory},
         "4 s"},
};

// Flags of a demo in `demo all`; prints a note if it trains for fewer updates than usual.
std::vector<std::string> shortened(const Demo& demo, bool quick) {
  if (quick && demo.quick) return {"--quick"};
  if (demo.updates_in_all == 0) return {};
  note_updates(demo.updates_in_all);
  return {"--updates", std::to_string(demo.updates_in_all)};
}

int list_demos(const Arguments& arguments) {
  Flags flags(arguments.command, "Lists the demos.");
  if (!flags.parse(arguments)) return 0;
  Table table({{"demo"}, number("takes"), {"what it shows"}});
  for (const Demo& demo : kDemos)
    table.row({std::string(demo.verb.name), std::string(demo.takes), std::string(demo.verb.summary)});
  table.print(std::cout);
  return 0;
}

// If one demo fails, the others still run.
int run_all(const Arguments& arguments) {
  std::filesystem::path out_dir = "runs/demo";
  std::string format = "both";
  bool quick = false;
  Flags flags(arguments.command, "Runs every demo in turn.");
  flags.add("out_dir", out_dir, "directory for the pictures", {.placeholder = "DIR"});
  flags.add("quick", quick, "let the demos that train for long do only a few updates, too few to learn much");
  add_format_flag(flags, format);
  flags.example("tzoo demo all --out_dir runs/demo");
  if (!flags.parse(arguments)) return 0;
  std::string faults;
  for (const Demo& demo : kDemos) {
    const std::string name(demo.verb.name);
    std::cout << (&demo == kDemos.data() ? "" : "\n") << "# tzoo demo " << name << "\n" << std::flush;
    std::vector<std::string> words{"--out_dir", out_dir.string(), "--format", format};
    for (std::string& word : shortened(demo, quick)) words.push_back(std::move(word));
    try {
      demo.verb.run({"tzoo demo " + name, words});
    } catch (const Error& error) {
      faults += (faults.empty() ? "" : "\n") + name + ": " + flag_message(error);
    }
  }
  if (!faults.empty()) throw Error(faults);
  return 0;
}

}  // namespace

int run_demo(const Arguments& arguments) {
  std::vector<Verb> verbs{{"list", "Actions", "list the demos", list_demos},
                          {"all", "Actions", "run every demo", run_all}};
  for (const Demo& demo : kDemos) verbs.push_back(demo.verb);
  return dispatch(arguments, "Shows what the tutorials explain, in numbers and pictures.", verbs);
}

}  // namespace zoo
