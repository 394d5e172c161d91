#include "apps/verbs/verbs.h"

#include <array>

#include "apps/demos/demo.h"
#include "apps/serve/service.h"

namespace zoo {
namespace {

constexpr std::string_view kSummary =
    "Transformer Zoo: trains, runs, inspects and exports BERT-, GPT- and T5-style transformers.";

constexpr std::array kVerbs{
    Verb{"models", "Models", "list model families and presets; count parameters and memory", run_models},
    Verb{"pull", "Models", "download a model from huggingface.co", run_pull},
    Verb{"demo", "Models", "run the tutorials' demos: numbers and pictures", run_demo},
    Verb{"inspect", "Models", "show what a checkpoint holds and whether its tensors fit", run_inspect},
    Verb{"forward", "Models", "run a model on token ids and save every tensor, to compare implementations",
         run_forward},
    Verb{"attention", "Models", "show a model's attention weights on a text: numbers, pictures, a web page",
         run_attention},
    Verb{"lens", "Models", "show what a model would answer after each layer (logit lens)", run_lens},
    Verb{"patch", "Models", "find where a model holds an answer: states of one text patched into another",
         run_patch},
    Verb{"steer", "Models", "add the direction from one set of texts to another, and see what a model writes",
         run_steer},
    Verb{"ablate", "Models", "switch heads, sublayers or layers off and see the answer change", run_ablate},
    Verb{"data", "Text", "list, fetch and generate datasets; turn text into token files", run_data},
    Verb{"tokenizer", "Text", "train a tokenizer; convert text to token ids and back", run_tokenizer},
    Verb{"train", "Training", "train a model from scratch, or fine-tune a checkpoint", run_train},
    Verb{"evaluate", "Training", "measure loss, perplexity, accuracy, F1, exact match or BLEU on a dataset",
         run_evaluate},
    Verb{"generate", "Use", "continue a text with a language model", run_generate},
    Verb{"chat", "Use", "talk with a model that has a chat template", run_chat},
    Verb{"embed", "Use", "turn texts into vectors and compare them", run_embed},
    Verb{"rank", "Use", "order documents by how well they answer a query", run_rank},
    Verb{"search", "Use", "find the passages of files and folders that answer a query", run_search},
    Verb{"classify", "Use", "label texts, or the words in them", run_classify},
    Verb{"fill-mask", "Use", "predict masked words", run_fill_mask},
    Verb{"answer", "Use", "find the answer to a question in a text", run_answer},
    Verb{"translate", "Use", "translate or summarise texts with an encoder-decoder", run_translate},
    Verb{"serve", "Use", "answer requests over HTTP as OpenAI's API does, many at once", run_serve},
    Verb{"export", "Use", "convert a model to TorchScript, a Hugging Face directory, GGUF or packed weights",
         run_export},
    Verb{"bench", "Use", "measure the speed and memory of generation, encoding, loading and training",
         run_bench},
    Verb{"completion", "Shell", "print a script that completes tzoo in bash or zsh", run_completion},
    Verb{"man", "Shell", "print the manual page", run_man},
};

}  // namespace

int run_command(const std::vector<std::string>& words) { return dispatch({"tzoo", words}, kSummary, kVerbs); }

CommandOutline outline_of_command() {
  CommandOutline outline;
  dispatch({"tzoo", {}, &outline}, kSummary, kVerbs);
  return outline;
}

}  // namespace zoo
