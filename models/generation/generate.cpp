#include "models/generation/generate.h"

#include <c10/core/InferenceMode.h>

#include "data/base/error.h"
#include "data/base/sizes.h"
#include "models/generation/module_decoder.h"
#include "models/generation/running_rows.h"
#include "models/generation/token_loop.h"

namespace zoo {
namespace {

// Greedy or sampled rows, with one token each per step.
class RowLoop : public TokenLoop {
 public:
  explicit RowLoop(GenerationTask& task)
      : most_(task.options.max_new_tokens),
        on_token_(task.on_token),
        rules_(task.options, task.model.config().vocab_size),
        rows_(task.model, task.prompts,
              {.max_new_tokens = task.options.max_new_tokens,
               .context = task.options.context,
               .decoder_start_token_id = task.options.decoder_start_token_id}),
        running_(task.options, rules_, rows_, task.result),
        sampler_(task.options.sampling, task.prompts.size()) {}

  bool going() const override { return steps_ < most_ && running_.any(); }

  bool step() override {
    ++steps_;
    const at::Tensor logits = rows_.next_logits();
    const TokenIds chosen = sampler_.sample(running_.allowed(logits, rows_), running_.numbers());
    for (std::size_t b = 0; b < chosen.size(); ++b) rows_.append(b, chosen[b]);
    const RunningRows::Step step = running_.take(chosen, logits, on_token_);
    if (!step.going.empty() && step.going.size() < chosen.size()) rows_.select(step.going);
    return step.wanted;
  }

 private:
  std::int64_t steps_ = 0, most_;
  const TokenCallback& on_token_;
  LogitsRules rules_;
  DecodingBatch rows_;
  RunningRows running_;
  TokenSampler sampler_;
};

void check_counts(const GenerationOptions& options) {
  const auto check_count = [](const char* name, std::int64_t count, std::int64_t most) {
    if (count < 1 || count > most) throw Error(name, " must be from 1 to ", most, ", got ", count);
  };
  check_count("max_new_tokens", options.max_new_tokens, kLargestGivenCount);
  check_count("draft_tokens", options.draft_tokens, kLargestGivenCount);
  check_count("num_beams", options.beams.num_beams, BeamOptions::kMostBeams);
}

std::unique_ptr<TokenLoop> loop_of(GenerationTask& task) {
  const GenerationOptions& options = task.options;
  const BeamOptions& beams = options.beams;
  const bool searches = beams.num_beams != 1 || beams.num_return_sequences != 1 || beams.num_beam_groups != 1;
  if (options.draft != nullptr) {
    if (task.model.config().rope_scaling.depends_on_length())
      throw Error("a draft model does not help a model whose rotary scaling depends on the length");
    if (searches) throw Error("a draft model does not help a beam search: leave out one of them");
    return drafting_loop(task);
  }
  if (searches) return beam_loop(task);
  return std::make_unique<RowLoop>(task);
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

struct GenerationRun::State {
  GenerationTask task;
  GenerationWatch watch{task.result};
  std::unique_ptr<TokenLoop> loop;
  bool ended = false;
};

GenerationRun::GenerationRun(DecodingModel& model, std::vector<TokenIds> prompts, GenerationOptions options,
                             TokenCallback on_token)
    : state_(new State{.task = {.model = model,
                                .prompts = std::move(prompts),
                                .options = std::move(options),
                                .on_token = std::move(on_token),
                                .result = {}},
                       .loop = nullptr}) {
  const c10::InferenceMode inference;
  GenerationTask& task = state_->task;
  check_counts(task.options);
  for (const TokenIds& prompt : task.prompts)
    task.result.prompt_count += static_cast<std::int64_t>(prompt.size());
  state_->loop = loop_of(task);
}

GenerationRun::~GenerationRun() = default;

bool GenerationRun::step() {
  const c10::InferenceMode inference;
  const auto& interrupted = state_->task.options.interrupted;
  if (state_->ended || !state_->loop->going() || (interrupted && interrupted())) return false;
  state_->ended = !state_->loop->step();
  state_->watch.step();
  return true;
}

GenerationResult GenerationRun::finish() {
  const c10::InferenceMode inference;
  state_->loop->finish();
  return std::move(state_->task.result);
}

GenerationResult generate(DecodingModel& model, const std::vector<TokenIds>& prompts,
                          const GenerationOptions& options, const TokenCallback& on_token) {
  GenerationRun run(model, prompts, options, on_token);
  while (run.step()) {
  }
  return run.finish();
}

GenerationResult generate(Model& model, const std::vector<TokenIds>& prompts,
                          const GenerationOptions& options, const TokenCallback& on_token) {
  ModuleDecoder decoder(model);
  return generate(decoder, prompts, options, on_token);
}

}  // namespace zoo
