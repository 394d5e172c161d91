#include "models/generation/generate.h"

#include <chrono>
#include <set>
#include <utility>

#include <c10/core/InferenceMode.h>

#include "data/base/error.h"
#include "data/base/sizes.h"
#include "models/generation/decoding_batch.h"
#include "models/generation/module_decoder.h"
#include "models/generation/token_loop.h"

namespace zoo {
namespace {

// Greedy or sampled rows, with one token each per step. Its rows are those that have not ended.
class RowLoop : public TokenLoop {
 public:
  explicit RowLoop(GenerationTask& task)
      : task_(task),
        rules_(task.options, task.model.config().vocab_size),
        rows_(task.model, task.prompts, task.options),
        sampler_(task.options.sampling, task.prompts.size()),
        numbers_(indices_below(rows_.size())) {
    for (std::size_t b = 0; b < rows_.size(); ++b)
      states_.push_back(rules_.first_state(rows_.tokens(b).size()));
    task.result.ids.resize(rows_.size());
    if (task.options.log_probabilities) task.result.log_probabilities.resize(rows_.size());
  }

  bool going() const override { return steps_ < task_.options.max_new_tokens && !numbers_.empty(); }

  bool step() override {
    ++steps_;
    const at::Tensor logits = rows_.next_logits();
    const TokenIds chosen = sampler_.sample(rules_.apply(logits, rows_.histories(), states_), numbers_);
    for (std::size_t b = 0; b < chosen.size(); ++b) rows_.append(b, chosen[b]);
    return take(chosen, logits);
  }

 private:
  // Records the rows' tokens, chosen by logits [B, V], and drops rows that end. False if the callback stops.
  bool take(const TokenIds& chosen, const at::Tensor& logits) {
    GenerationResult& result = task_.result;
    const bool scores = task_.options.log_probabilities;
    const at::Tensor own = scores ? log_probabilities_of(logits).to(at::kCPU) : logits;
    std::vector<std::int64_t> going;
    bool wanted = true;
    for (std::size_t b = 0; b < chosen.size(); ++b) {
      NewToken token{numbers_[b], chosen[b]};
      if (scores) {
        token.log_probability = own[static_cast<std::int64_t>(b)][token.id].item<double>();
        result.log_probabilities[token.row].push_back(token.log_probability);
      }
      TokenIds& ids = result.ids[token.row];
      ids.push_back(token.id);
      states_[b] = rules_.next_state(states_[b], token.id, rows_.tokens(b).size() - 1);
      if (!rules_.ends(ids, states_[b])) going.push_back(static_cast<std::int64_t>(b));
      if (task_.on_token && !task_.on_token(token)) wanted = false;
    }
    if (going.size() == chosen.size()) return wanted;
    if (!going.empty()) rows_.select(going);
    numbers_ = selected(numbers_, going);
    states_ = selected(states_, going);
    return wanted;
  }

  GenerationTask& task_;
  std::int64_t steps_ = 0;
  LogitsRules rules_;
  DecodingBatch rows_;
  TokenSampler sampler_;
  std::vector<std::size_t> numbers_;  // of each row its index in the result
  std::vector<std::int64_t> states_;  // of the constraint
};

void check_counts(const GenerationOptions& options) {
  const auto check_count = [](const char* name, std::int64_t count, std::int64_t most) {
    if (count < 1 || count > most) throw Error(name, " must be from 1 to ", most, ", got ", count);
  };
  check_count("max_new_tokens", options.max_new_tokens, kLargestGivenCount);
  check_count("draft_tokens", options.draft_tokens, kLargestGivenCount);
  if (options.prompt_lookup_num_tokens != 0)
    check_count("prompt_lookup_num_tokens", options.prompt_lookup_num_tokens, kLargestGivenCount);
  check_count("num_beams", options.beams.num_beams, BeamOptions::kMostBeams);
}

std::unique_ptr<TokenLoop> loop_of(GenerationTask& task) {
  const GenerationOptions& options = task.options;
  const BeamOptions& beams = options.beams;
  const bool searches = beams.num_beams != 1 || beams.num_return_sequences != 1;
  if (options.draft != nullptr || options.prompt_lookup_num_tokens > 0) {
    if (task.model.config().rope_scaling.depends_on_length())
      throw Error("drafts do not help a model whose rotary scaling depends on the length");
    if (searches) throw Error("drafts do not help a beam search: leave out one of them");
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
  std::unique_ptr<TokenLoop> loop;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  bool begun = false, ended = false;
};

GenerationRun::GenerationRun(DecodingModel& model, std::vector<TokenIds> prompts, GenerationOptions options,
                             TokenCallback on_token)
    : state_(new State{.task = {model, std::move(prompts), std::move(options), std::move(on_token), {}},
                       .loop = nullptr}) {
  const c10::InferenceMode inference;
  GenerationTask& task = state_->task;
  check_counts(task.options);
  for (const TokenIds& prompt : std::set(task.prompts.begin(), task.prompts.end()))
    task.result.prompt_count += static_cast<std::int64_t>(prompt.size());
  state_->loop = loop_of(task);
}

GenerationRun::~GenerationRun() = default;

bool GenerationRun::step() {
  const c10::InferenceMode inference;
  const auto& interrupted = state_->task.options.interrupted;
  if (state_->ended || !state_->loop->going() || (interrupted && interrupted())) return false;
  state_->ended = !state_->loop->step();
  const auto now = std::chrono::steady_clock::now();
  GenerationResult& result = state_->task.result;
  const bool first = !std::exchange(state_->begun, true);
  (first ? result.seconds_prefill : result.seconds_decode) =
      std::chrono::duration<double>(now - state_->start).count();
  if (first) state_->start = now;
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
