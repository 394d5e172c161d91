#include "apps/hub/pull.h"

#include <iostream>

#include "apps/command/flags.h"
#include "apps/verbs/verbs.h"

namespace zoo {

int run_pull(const Arguments& arguments) {
  std::string model;
  Flags flags(
      arguments.command,
      "Downloads a model from huggingface.co into the cache that Python's huggingface_hub shares: "
      "safetensors, JSON and tokenizer files. Each file is checked against the hub's hash, and a pull that "
      "was cut off "
      "continues. Prints the folder; --model takes it, or the model's name. Environment: HF_TOKEN for "
      "private and gated models, HF_ENDPOINT for a mirror, HF_HOME or HF_HUB_CACHE for the cache.");
  flags.positional("name", model, "model on the hub, and a branch, tag or commit if it is not main",
                   {.placeholder = "NAME[@REVISION]", .required = true});
  flags.example("tzoo pull openai-community/gpt2");
  if (!flags.parse(arguments)) return 0;
  std::cout << pull(HubName::parse(model), Hub::from_environment()).string() << "\n";
  return 0;
}

}  // namespace zoo
