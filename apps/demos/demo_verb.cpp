#include <iostream>
#include <string_view>

#include "apps/command/verbs.h"
#include "apps/demos/demo.h"
#include "data/base/error.h"

namespace zoo {
namespace {

// A verb returns its exit code.
template <void (*demo)(const Arguments&)> int as_verb(const Arguments& arguments) {
  demo(arguments);
  return 0;
}

struct Demo {
  std::string_view name;
  int (*run)(const Arguments&);
  std::string_view summary, takes = "<1 s";  // on two cores of 2023
  bool quick = false;                        // knows --quick
  std::int64_t updates_in_all = 0;           // where its own default takes too long among others
};

constexpr Demo kDemos[] = {
    {"embeddings", as_verb<demo_embeddings>, "words that occur in the same company get the same vector"},
    {"ambiguous", as_verb<demo_ambiguous>,
     "an ambiguous word that must attend to the next one to know its meaning"},
    {"disagreement", as_verb<demo_disagreement>,
     "two heads that the loss keeps from attending to the same word"},
    {"scaling-variance", as_verb<demo_scaling_variance>,
     "why attention divides its scores by the root of their dimension"},
    {"masking", as_verb<demo_masking>, "what causal and padding masks hide, and where NaN comes from"},
    {"positions", as_verb<demo_positions>, "six position encodings and proofs of their properties"},
    {"heads", as_verb<demo_heads>, "the same attention with 1, 8 and 16 heads, each head measured"},
    {"norms", as_verb<demo_norms>, "the gradient through 6 to 48 layers, pre-LN and post-LN"},
    {"model-size", as_verb<demo_model_size>, "parameters and training memory of known models"},
    {"feed-forwards", as_verb<demo_feed_forwards>, "feed-forward variants with equal parameters on one task",
     "2 s"},
    {"efficient-attention", as_verb<demo_efficient_attention>,
     "sparse, linear and low-rank attention compared with full attention", "5 s"},
    {"rnn-vs-transformer", as_verb<demo_rnn_vs_transformer>,
     "an LSTM compared with a transformer: speed, and remembering a word", "4 s"},
    {"explore-embeddings", as_verb<demo_explore_embeddings>,
     "nearest neighbours and analogies of words, also in a checkpoint"},
    {"translate", as_verb<demo_translate>, "a small T5 learns to translate, tested on unseen pairs of words",
     "1 min", true},
    {"length-generalisation", as_verb<demo_length_generalisation>,
     "position encodings tested on longer tasks than those in training", "4 min", true, 600},
    {"training-memory", as_verb<demo_training_memory>,
     "gradient accumulation, bfloat16 and gradient checkpointing compared", "4 s"},
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
    table.row({std::string(demo.name), std::string(demo.takes), std::string(demo.summary)});
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
    const std::string name(demo.name);
    std::cout << (&demo == kDemos ? "" : "\n") << "# tzoo demo " << name << "\n" << std::flush;
    std::vector<std::string> words{"--out_dir", out_dir.string(), "--format", format};
    for (std::string& word : shortened(demo, quick)) words.push_back(std::move(word));
    try {
      demo.run({"tzoo demo " + name, words});
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
  for (const Demo& demo : kDemos) verbs.push_back({demo.name, "Demos", demo.summary, demo.run});
  return dispatch(arguments, "Shows what the tutorials explain, in numbers and pictures.", verbs);
}

}  // namespace zoo
