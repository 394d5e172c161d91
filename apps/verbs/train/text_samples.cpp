#include "apps/verbs/train/text_samples.h"

#include "apps/command/arguments.h"
#include "apps/training/stop_signal.h"
#include "models/generation/generate.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

TextSamples text_samples(const TrainFlags& flags, Model& model, std::shared_ptr<const Tokenizer> tokenizer) {
  if (flags.sample_interval == 0) return {};
  if (flags.data.task != Task::kLm || model.config().shape != Shape::kDecoder)
    throw UsageError("--sample_interval: only a model of --task lm continues a text");
  if (!tokenizer)
    throw UsageError("--sample_interval: ", flags.data.dataset, " has no tokenizer for its text");
  const TokenIds prompt = tokenizer->encode(flags.sample_prompt.value_or("\n"));
  if (prompt.empty()) throw UsageError("--sample_prompt: expected a text of at least one token");
  const auto text = [&model, prompt, tokenizer] {
    const at::NoGradGuard no_grad;
    GenerationOptions options{.max_new_tokens = 80, .sampling = {.temperature = 0.8}};
    options.interrupted = [] { return StopSignal::received() != 0; };
    TokenIds ids = prompt;
    const GenerationResult result = generate(model, {prompt}, options);
    ids.insert(ids.end(), result.ids.front().begin(), result.ids.front().end());
    return replace_invalid_utf8(tokenizer->decode(ids));
  };
  return {.interval = flags.sample_interval, .text = text};
}

}  // namespace zoo
