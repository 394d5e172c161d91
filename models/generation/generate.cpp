#include "models/generation/generate.h"

#include <c10/core/InferenceMode.h>

#include "data/base/error.h"
#include "data/base/sizes.h"
#include "models/generation/beam_search.h"
#include "models/generation/contrastive_search.h"
#include "models/generation/drafting.h"
#include "models/generation/module_decoder.h"
#include "models/generation/running_rows.h"

namespace zoo {
namespace {

// Rows that each take one token per step, greedy or sampled.
class RowLoop {
 public:
  RowLoop(DecodingModel& model, const std::vector<TokenIds>& prompts, const GenerationOptions& options,
          GenerationResult& result)
      : rules_(options, model.config().vocab_size),
        rows_(model, prompts,
              {.max_new_tokens = options.max_new_tokens,
               .context = options.context,
               .decoder_start_token_id = options.decoder_start_token_id}),
        running_(options, rules_, rows_, result),
        sampler_(options.sampling, prompts.size()) {}

  bool going() const { return running_.any(); }

  // Adds a token to each row that has not ended. False if the callback asked to stop.
  bool step(const TokenCallback& on_token) {
    const at::Tensor logits = rows_.next_logits();
    const TokenIds chosen = sampler_.sample(running_.allowed(logits, rows_), running_.numbers());
    for (std::size_t b = 0; b < chosen.size(); ++b) rows_.append(b, chosen[b]);
    const RunningRows::Step step = running_.take(chosen, logits, on_token);
    if (!step.going.empty() && step.going.size() < chosen.size()) rows_.select(step.going);
    return step.wanted;
  }

 private:
  LogitsRules rules_;
  DecodingBatch rows_;
  RunningRows running_;
  TokenSampler sampler_;
};

void generate_rows(DecodingModel& model, const std::vector<TokenIds>& prompts,
                   const GenerationOptions& options, const TokenCallback& on_token,
                   GenerationResult& result) {
  GenerationWatch watch(result);
  RowLoop loop(model, prompts, options, result);
  for (std::int64_t step = 0; step < options.max_new_tokens && loop.going(); ++step) {
    if (options.interrupted && options.interrupted()) break;
    const bool wanted = loop.step(on_token);
    watch.step();
    if (!wanted) break;
  }
}

void generate_beams(DecodingModel& model, const std::vector<TokenIds>& prompts,
                    const GenerationOptions& options, const TokenCallback& on_token,
                    GenerationResult& result) {
  GenerationWatch watch(result);
  const auto found = beam_search(model, prompts, options, [&] { watch.step(); });
  watch.step();
  for (const std::vector<FoundBeam>& beams : found) {
    if (beams.empty() && !(options.interrupted && options.interrupted()))
      throw Error("no token can be chosen: the filters and the constraint allow none");
    for (std::int64_t b = 0; b < options.beams.num_return_sequences; ++b) {
      const bool there = static_cast<std::size_t>(b) < beams.size();
      const FoundBeam beam = there ? beams[static_cast<std::size_t>(b)] : FoundBeam{};
      result.ids.push_back(beam.ids);
      result.scores.push_back(beam.score);
      if (options.log_probabilities) result.log_probabilities.push_back(beam.log_probabilities);
      for (std::size_t i = 0; on_token && i < beam.ids.size(); ++i) {
        const double log_probability = options.log_probabilities ? beam.log_probabilities[i] : 0;
        on_token({result.ids.size() - 1, beam.ids[i], log_probability});
      }
    }
  }
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
  const auto check_count = [](const char* name, std::int64_t count, std::int64_t most) {
    if (count < 1 || count > most) throw Error(name, " must be from 1 to ", most, ", got ", count);
  };
  check_count("max_new_tokens", options.max_new_tokens, kLargestGivenCount);
  check_count("draft_tokens", options.draft_tokens, kLargestGivenCount);
  check_count("num_beams", options.beams.num_beams, BeamOptions::kMostBeams);
  const c10::InferenceMode inference;
  GenerationResult result;
  for (const TokenIds& prompt : prompts) result.prompt_count += static_cast<std::int64_t>(prompt.size());
  const BeamOptions& beams = options.beams;
  const bool searches = beams.num_beams != 1 || beams.num_return_sequences != 1 || beams.num_beam_groups != 1;
  if (options.contrastive.penalty_alpha != 0) {
    if (searches) throw Error("contrastive search follows no beams: leave out penalty_alpha or num_beams");
    if (options.draft != nullptr)
      throw Error("a draft model does not help a contrastive search: leave out one of them");
    generate_contrastive(model, prompts, options, on_token, result);
  } else if (options.draft != nullptr) {
    if (model.config().rope_scaling.depends_on_length())
      throw Error("a draft model does not help a model whose rotary scaling depends on the length");
    if (searches) throw Error("a draft model does not help a beam search: leave out one of them");
    generate_drafted(model, prompts, options, on_token, result);
  } else {
    (searches ? generate_beams : generate_rows)(model, prompts, options, on_token, result);
  }
  return result;
}

GenerationResult generate(Model& model, const std::vector<TokenIds>& prompts,
                          const GenerationOptions& options, const TokenCallback& on_token) {
  ModuleDecoder decoder(model);
  return generate(decoder, prompts, options, on_token);
}

}  // namespace zoo
