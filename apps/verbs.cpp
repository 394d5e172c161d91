#include "apps/verbs.h"

#include <array>

namespace zoo {
namespace {

constexpr std::string_view kSummary =
    "Transformer Zoo: trains, runs, inspects and exports BERT-, GPT- and T5-style transformers.";

constexpr std::array kVerbs{
    Verb{"models", "Models", "the registry: families, presets, parameters per component, memory", run_models},
    Verb{"demo", "Models", "the tutorials' demos: numbers and pictures", run_demo},
    Verb{"inspect", "Models", "what a checkpoint holds and what is missing from it", run_inspect},
    Verb{"forward", "Models", "run a model on ids and write all its tensors, to compare it with another",
         run_forward},
    Verb{"attention", "Models", "what the heads look at in a text: numbers, pictures, a page", run_attention},
    Verb{"data", "Text", "corpora: list, fetch, generate, turn into token files", run_data},
    Verb{"tokenizer", "Text", "learn a vocabulary; text to ids and back", run_tokenizer},
    Verb{"train", "Training", "train a model, from scratch or from a checkpoint", run_train},
    Verb{"evaluate", "Training", "measure a model: loss, perplexity, accuracy, f1, exact match, BLEU",
         run_evaluate},
    Verb{"generate", "Use", "continue a text", run_generate},
    Verb{"embed", "Use", "turn texts into vectors; compare them", run_embed},
    Verb{"classify", "Use", "label texts, or the words in them", run_classify},
    Verb{"fill-mask", "Use", "guess masked words", run_fill_mask},
    Verb{"answer", "Use", "find the answer to a question in a text", run_answer},
    Verb{"translate", "Use", "turn a text into another with an encoder-decoder", run_translate},
    Verb{"export", "Use", "write a model as TorchScript or as a Hugging Face directory", run_export},
    Verb{"bench", "Use", "measure decoding, encoding and loading", run_bench},
    Verb{"completion", "Shell", "print a script that completes tzoo in bash, zsh or fish", run_completion},
    Verb{"man", "Shell", "print the manual page", run_man},
};

}  // namespace

int run_command(const std::vector<std::string>& words) {
  return dispatch({"tzoo", words}, kSummary, kVerbs);
}

CommandOutline outline_of_command() {
  CommandOutline outline;
  dispatch({"tzoo", {}, &outline}, kSummary, kVerbs);
  return outline;
}

}  // namespace zoo
