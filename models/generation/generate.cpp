#include "models/generation/generate.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include <c10/core/InferenceMode.h>

#include "data/base/error.h"
#include "models/generation/growing_rows.h"
#include "models/generation/module_decoder.h"

namespace zoo {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::int64_t GenerationResult::token_count() const {
  std::size_t count = 0;
  for (const TokenIds& row : ids) count += row.size();
  return static_cast<std::int64_t>(count);
}

double GenerationResult::tokens_per_second() const {
  const double seconds = seconds_prefill + seconds_decode;
  return seconds > 0 ? static_cast<double>(token_count()) / seconds : 0;
}

GenerationResult generate(DecodingModel& model, const std::vector<TokenIds>& prompts,
                          const GenerationOptions& options, const TokenCallback& on_token) {
  if (options.max_new_tokens < 1)
    throw Error("max_new_tokens must be at least 1, got ", options.max_new_tokens);
  GenerationResult result{.ids = std::vector<TokenIds>(prompts.size())};
  const c10::InferenceMode inference;
  auto start = std::chrono::steady_clock::now();
  GrowingRows rows(
      model, prompts,
      {.max_new_tokens = options.max_new_tokens, .decoder_start_token_id = options.decoder_start_token_id});
  TokenSampler sampler(options.sampling, prompts.size());
  const auto ends = [&](std::int64_t id) {
    return std::find(options.eos_token_ids.begin(), options.eos_token_ids.end(), id) !=
           options.eos_token_ids.end();
  };
  std::vector<std::size_t> numbers(prompts.size());  // of the rows that have not ended
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::int64_t step = 0; step < options.max_new_tokens && !numbers.empty(); ++step) {
    const TokenIds chosen = sampler.sample(rows.next_logits(), numbers);
    std::vector<std::size_t> going;
    std::vector<std::int64_t> kept;
    bool stopped = false;
    for (std::size_t b = 0; b < chosen.size(); ++b) {
      rows.append(b, chosen[b]);
      result.ids[numbers[b]].push_back(chosen[b]);
      if (!ends(chosen[b])) {
        going.push_back(numbers[b]);
        kept.push_back(static_cast<std::int64_t>(b));
      }
      if (on_token && !on_token(numbers[b], chosen[b])) stopped = true;
    }
    (step == 0 ? result.seconds_prefill : result.seconds_decode) = seconds_since(start);
    if (step == 0) start = std::chrono::steady_clock::now();
    if (stopped) break;
    if (going.size() < numbers.size() && !going.empty()) rows.select(kept);
    numbers = std::move(going);
  }
  return result;
}

GenerationResult generate(Model& model, const std::vector<TokenIds>& prompts,
                          const GenerationOptions& options, const TokenCallback& on_token) {
  ModuleDecoder decoder(model);
  return generate(decoder, prompts, options, on_token);
}

}  // namespace zoo
