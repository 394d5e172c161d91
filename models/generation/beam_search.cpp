#include <algorithm>
#include <cmath>
#include <optional>

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <c10/util/irange.h>

#include "data/base/error.h"
#include "models/generation/token_loop.h"

namespace zoo {
namespace {

struct FoundBeam {
  TokenIds ids;
  std::vector<double> log_probabilities;  // of each token, if asked for
  double score = 0;                       // sum of the filtered ones, divided according to length_penalty
};

// A hypothesis that may become a result.
struct Beam {
  FoundBeam found;         // while it runs, its score is the sum
  std::int64_t row = 0;    // prompt row whose tokens it continues
  std::int64_t state = 0;  // state of the constraint
  bool ends = false;
};

// In float32, like Hugging Face: rounding decides between close scores.
float penalized(double score, std::int64_t length, double penalty) {
  return static_cast<float>(score) / static_cast<float>(std::pow(static_cast<double>(length), penalty));
}

// Beams of one prompt, as in Hugging Face's `generate`: there are more candidates than beams; those that end
// compete with the finished ones, and the best of the others continue.
class PromptBeams {
 public:
  PromptBeams(std::size_t prompt, const BeamOptions& options)
      : prompt_(prompt), beams_(static_cast<std::size_t>(options.num_beams)), options_(options) {
    running_.resize(beams_);
    // All beams hold the prompt, so that only the first one is continued at first.
    for (std::size_t b = 1; b < beams_; ++b) running_[b].found.score = kHopeless;
  }

  std::size_t prompt() const { return prompt_; }
  const std::vector<Beam>& running() const { return running_; }

  // Continues the running beams with `candidates`, in their order, of `length` of `max_length` new tokens.
  void advance(std::vector<Beam> candidates, std::int64_t length, std::int64_t max_length) {
    finish(candidates, length);
    const bool all_end = std::ranges::all_of(candidates, &Beam::ends);
    std::ranges::stable_sort(candidates, [](const Beam& a, const Beam& b) {
      return a.ends != b.ends ? b.ends : a.found.score > b.found.score;
    });
    candidates.resize(beams_, candidates.back());
    for (Beam& beam : candidates) {
      // Too few candidates continue.
      if (beam.ends) beam.found.score = kHopeless;
      beam.ends = false;
    }
    running_ = std::move(candidates);
    const double going = running_.front().found.score;
    done_ = all_end || !std::isfinite(going) || !can_improve(going, length, max_length) ||
            (options_.early_stopping == EarlyStopping::kFull && full());
  }

  bool done() const { return done_; }

  // Finished beams, best first.
  const std::vector<FoundBeam>& finished() const { return finished_; }

 private:
  static constexpr double kHopeless = -1e9;  // score of a beam that cannot win

  // Finishes those of the first `beams_` candidates that end.
  void finish(const std::vector<Beam>& candidates, std::int64_t length) {
    for (std::size_t c = 0; c < std::min(candidates.size(), beams_); ++c) {
      FoundBeam found = candidates[c].found;
      if (!candidates[c].ends || !(found.score > kHopeless / 2)) continue;
      found.score = penalized(found.score, length, options_.length_penalty);
      finished_.push_back(std::move(found));
    }
    std::ranges::stable_sort(finished_, std::greater<>(), &FoundBeam::score);
    if (finished_.size() > beams_) finished_.resize(beams_);
  }

  // `score`: the best sum of a candidate.
  bool can_improve(double score, std::int64_t length, std::int64_t max_length) const {
    if (!full()) return true;
    const bool longest = options_.early_stopping == EarlyStopping::kNever && options_.length_penalty > 0;
    const float best = penalized(score, longest ? max_length : length, options_.length_penalty);
    return best > static_cast<float>(finished_.back().score);
  }

  bool full() const { return finished_.size() == beams_; }

  std::size_t prompt_, beams_;
  BeamOptions options_;
  std::vector<Beam> running_;
  std::vector<FoundBeam> finished_;
  bool done_ = false;
};

class BeamSearch : public TokenLoop {
 public:
  explicit BeamSearch(GenerationTask& task)
      : task_(task),
        options_(task.options),
        rules_(options_, task.model.config().vocab_size),
        rows_(task.model, repeated(task.prompts, options_.beams.num_beams), options_) {
    const std::size_t prompts = task.prompts.size();
    for (const auto prompt : c10::irange(prompts)) searches_.emplace_back(prompt, options_.beams);
    for (const auto row : c10::irange(rows_.size()))
      states_.push_back(rules_.first_state(rows_.tokens(row).size()));
    found_.resize(prompts);
    if (options_.beams.sample) sampler_.emplace(options_.sampling, prompts, candidates_per_beam());
  }

  bool going() const override { return !searches_.empty(); }
  bool step() override {
    const at::Tensor logits = rows_.next_logits();
    const at::Tensor own = log_probabilities_of(logits);
    if (options_.log_probabilities) own_ = own.to(at::kCPU);
    const at::Tensor allowed = rules_.apply(own, rows_.histories(), states_);
    const at::Tensor scores = sampler_ ? sampler_->filtered(allowed) : allowed;
    ++length_;
    std::vector<PromptBeams> going;
    std::int64_t first = 0;
    for (PromptBeams& search : searches_) {
      at::Tensor own_scores = scores.slice(0, first, first + options_.beams.num_beams);
      if (options_.beams.renormalize_logits)  // a beam without an allowed continuation keeps its -inf
        own_scores = at::log_softmax(own_scores, -1).masked_fill_(own_scores.isneginf(), -INFINITY);
      search.advance(candidates(search, own_scores, first), length_, options_.max_new_tokens);
      first += options_.beams.num_beams;
      if (search.done()) {
        take(search);
      } else {
        going.push_back(std::move(search));
      }
    }
    keep(going);
    searches_ = std::move(going);
    return true;
  }

  void finish() override {
    GenerationResult& result = task_.result;
    const bool interrupted = !searches_.empty();
    for (const PromptBeams& search : searches_) take(search);
    for (const std::vector<FoundBeam>& beams : found_) {
      if (beams.empty() && !interrupted)
        throw Error("no token can be chosen: the filters and the constraint allow none");
      for (const auto b : c10::irange(static_cast<std::size_t>(options_.beams.num_return_sequences))) {
        const FoundBeam beam = b < beams.size() ? beams[b] : FoundBeam{};
        result.ids.push_back(beam.ids);
        result.scores.push_back(beam.score);
        if (options_.log_probabilities) result.log_probabilities.push_back(beam.log_probabilities);
        for (std::size_t i = 0; task_.on_token && i < beam.ids.size(); ++i) {
          const double log_probability = options_.log_probabilities ? beam.log_probabilities[i] : 0;
          task_.on_token({result.ids.size() - 1, beam.ids[i], log_probability});
        }
      }
    }
  }

 private:
  static std::vector<TokenIds> repeated(const std::vector<TokenIds>& prompts, std::int64_t times) {
    std::vector<TokenIds> rows;
    for (const TokenIds& prompt : prompts) rows.insert(rows.end(), static_cast<std::size_t>(times), prompt);
    return rows;
  }

  // So many that at least `num_beams` candidates continue, even if each beam could end.
  std::int64_t candidates_per_beam() const {
    return std::max<std::int64_t>(2, 1 + static_cast<std::int64_t>(options_.eos_token_ids.size()));
  }

  // Most likely, or drawn, continuations of a prompt's beams, whose scores [beams, V] start at row `first`.
  std::vector<Beam> candidates(const PromptBeams& search, const at::Tensor& scores, std::int64_t first) {
    std::vector<float> sums;
    for (const Beam& beam : search.running()) sums.push_back(static_cast<float>(beam.found.score));
    const at::Tensor all = (scores + at::tensor(sums).unsqueeze(1).to(scores.device())).flatten();
    const std::int64_t count = std::min(candidates_per_beam() * options_.beams.num_beams, all.numel());
    const at::Tensor places = sampler_ ? sampler_->draw_places(all, count, search.prompt())
                                       : std::get<1>(at::topk(all, count)).to(at::kCPU);
    const at::Tensor values = all.index_select(0, places.to(all.device())).to(at::kCPU);
    std::vector<Beam> found;
    for (const auto c : c10::irange(count)) {
      const std::int64_t place = places.const_data_ptr<std::int64_t>()[c];
      const std::int64_t b = place / scores.size(1);
      const auto id = static_cast<TokenId>(place % scores.size(1));
      Beam beam = search.running()[static_cast<std::size_t>(b)];
      beam.row = first + b;
      beam.found.score = values.const_data_ptr<float>()[c];
      beam.found.ids.push_back(id);
      if (own_.defined()) beam.found.log_probabilities.push_back(own_[beam.row][id].item<double>());
      const auto row = static_cast<std::size_t>(beam.row);
      beam.state = rules_.next_state(states_[row], id, rows_.tokens(row).size());
      beam.ends = length_ == options_.max_new_tokens || rules_.ends(beam.found.ids, beam.state);
      found.push_back(std::move(beam));
    }
    return found;
  }

  void keep(const std::vector<PromptBeams>& going) {
    if (going.empty()) return;
    std::vector<std::int64_t> rows, states;
    TokenIds ids;
    for (const PromptBeams& search : going) {
      for (const Beam& beam : search.running()) {
        rows.push_back(beam.row);
        ids.push_back(beam.found.ids.back());
        states.push_back(beam.state);
      }
    }
    rows_.select(rows);
    for (const auto b : c10::irange(ids.size())) rows_.append(b, ids[b]);
    states_ = std::move(states);
  }

  // Takes the best beams; an interrupted search without finished ones gives its first running beam.
  void take(const PromptBeams& search) {
    std::vector<FoundBeam>& best = found_[search.prompt()];
    best = search.finished();
    if (!search.done() && best.empty()) best.push_back(search.running().front().found);
    const auto wanted = static_cast<std::size_t>(options_.beams.num_return_sequences);
    // Forced tokens or a constraint may allow fewer.
    if (!best.empty()) best.resize(wanted, best.back());
  }

  GenerationTask& task_;
  const GenerationOptions& options_;
  LogitsRules rules_;
  std::optional<TokenSampler> sampler_;  // of beams that sample; a row is a prompt
  DecodingBatch rows_;
  std::vector<PromptBeams> searches_;  // prompts that are not done
  std::vector<std::int64_t> states_;   // of the constraint, one per row
  at::Tensor own_;                     // the model's log-probabilities of the step, if asked for
  std::vector<std::vector<FoundBeam>> found_;
  std::int64_t length_ = 0;  // new tokens
};

}  // namespace

std::unique_ptr<TokenLoop> beam_loop(GenerationTask& task) {
  const BeamOptions& options = task.options.beams;
  const double temperature = task.options.sampling.temperature;
  if (options.num_return_sequences < 1 || options.num_return_sequences > options.num_beams)
    throw Error("num_return_sequences must be from 1 to num_beams, which is ", options.num_beams, ", got ",
                options.num_return_sequences);
  if (!std::isfinite(options.length_penalty))
    throw Error("length_penalty must be a number, got ", options.length_penalty);
  if (options.sample && temperature == 0)
    throw Error("beams that sample need a positive temperature, got ", temperature);
  return std::make_unique<BeamSearch>(task);
}

}  // namespace zoo
