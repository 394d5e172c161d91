#include <iostream>

#include "apps/command/flags.h"
#include "apps/hub/hub_cache.h"
#include "apps/verbs/verbs.h"

namespace zoo {

int run_pull(const Arguments& arguments) {
  std::string name;
  std::vector<std::string> include;
  Flags flags(
      arguments.command,
      "Downloads a model or a dataset from huggingface.co into the cache that Python's huggingface_hub "
      "shares: safetensors, JSON and tokenizer files, or the tables and texts that train reads. Each file is "
      "checked against the hub's hash, and a pull that was cut off continues. Prints the folder; --model "
      "takes it, or the model's name. Environment: HF_TOKEN for private and gated models, HF_ENDPOINT for a "
      "mirror, HF_HOME or HF_HUB_CACHE for the cache.");
  flags.positional(
      "name", name,
      "model on the hub, or datasets/ and a dataset, and a branch, tag or commit if it is not main",
      {.placeholder = "NAME[@REVISION]", .required = true});
  flags.add("include", include, "datasets: only files whose path fits this pattern, such as 'data/train-*'",
            {.placeholder = "PATTERN"});
  flags.example("tzoo pull openai-community/gpt2");
  flags.example("tzoo pull datasets/roneneldan/TinyStories --include 'data/validation-*'");
  if (!flags.parse(arguments)) return 0;
  const HubName wanted = HubName::parse(name);
  if (!include.empty() && !wanted.is_dataset)
    throw UsageError("--include: only for datasets; of a model all files that it needs are downloaded");
  std::cout << download(wanted, include).string() << "\n";
  return 0;
}

}  // namespace zoo
