#include <algorithm>
#include <optional>

#include "data/base/error.h"
#include "models/generation/logits_rules.h"
#include "models/generation/token_loop.h"

namespace zoo {
namespace {

// One row in one of the two models.
class RowSession {
 public:
  RowSession(DecodingModel& model, const TokenIds& prompt, std::size_t most_tokens,
             const GenerationOptions& options)
      : context_(context_limit(model.config(), options.context)),
        limit_(std::min(static_cast<std::size_t>(context_), most_tokens)) {
    const auto capacity = static_cast<std::int64_t>(limit_);
    session_ = model.config().shape == Shape::kEncoderDecoder ? model.begin({prompt}, capacity)
                                                              : model.begin(1, capacity);
    if (!options.keep_cache || model.config().rope_scaling.depends_on_length()) return;
    session_->keep();
    session_->reuse(0, prompt);
  }

  // Logits [count, V] after each of the last `count` tokens, none of which has been read.
  at::Tensor read(const TokenIds& tokens, std::size_t count) {
    if (tokens.size() - start_ > limit_) {
      start_ = tokens.size() - static_cast<std::size_t>(std::max<std::int64_t>(1, context_ / 2));
      session_->rewind(0, 0);
    }
    const std::size_t next = start_ + static_cast<std::size_t>(session_->length(0));
    const TokenIds unread(tokens.begin() + static_cast<std::ptrdiff_t>(next), tokens.end());
    if (count == 1) return session_->read({unread});
    const at::Tensor all = session_->read({unread}, DecodingSession::Logits::kAll)[0];
    return all.slice(0, -static_cast<std::int64_t>(count));
  }

  // Drops tokens read after the first `count`.
  void keep(std::size_t count) {
    const bool slid = count <= start_;  // past rejected drafts
    if (slid) start_ = count - 1;
    const auto held = slid ? 0 : static_cast<std::int64_t>(count - start_);
    if (session_->length(0) > held) session_->rewind(0, held);
  }

  // Number of tokens that fit after the first `count` before the context slides.
  std::size_t room(std::size_t count) const {
    const std::size_t seen = count - start_;
    return seen < limit_ ? limit_ - seen : 0;
  }

 private:
  std::int64_t context_;
  std::size_t limit_;
  std::size_t start_ = 0;  // start of the visible part
  std::unique_ptr<DecodingSession> session_;
};

class DraftedRow {
 public:
  DraftedRow(DecodingModel& model, const TokenIds& prompt, const TokenIds& first, std::size_t row,
             const GenerationOptions& options, const LogitsRules& rules, TokenSampler& sampler)
      : options_(options),
        rules_(rules),
        sampler_(sampler),
        row_(row),
        given_(first.size()),
        tokens_(first),
        states_{rules.first_state()},
        target_(model, prompt, most_tokens(), options),
        draft_(*options.draft, prompt, most_tokens(), options) {}

  // Drafts, verifies and accepts tokens: returns at least one for the row, with log-probabilities if asked
  // for.
  std::vector<NewToken> step(GenerationResult& result) {
    const std::size_t begin = tokens_.size(), written = begin - given_;
    // One token always comes from the model itself.
    const std::size_t rest = static_cast<std::size_t>(options_.max_new_tokens) - written - 1;
    const std::size_t count =
        std::min({static_cast<std::size_t>(options_.draft_tokens), rest, target_.room(begin)});
    std::vector<at::Tensor> guesses;  // distributions that the drafts were drawn from
    for (std::size_t i = 0; i < count; ++i) {
      guesses.push_back(distribution(draft_.read(tokens_, 1)[0]));
      push(sampler_.draw(guesses.back(), row_));
    }
    const TokenIds drafts(tokens_.begin() + static_cast<std::ptrdiff_t>(begin), tokens_.end());
    const at::Tensor logits = target_.read(tokens_, count + 1);
    cut(begin);

    std::vector<NewToken> got;
    for (std::size_t i = 0; i <= count; ++i) {
      const at::Tensor own = logits[static_cast<std::int64_t>(i)];
      const at::Tensor wanted = distribution(own);
      TokenId id = 0;
      bool accepted = false;
      if (i < count) {
        // Leviathan et al., algorithm 1: keeps a draft with probability min(1, p / q), else draws from max(0,
        // p
        // - q).
        id = drafts[i];
        const auto p = wanted[id].item<double>(), q = guesses[i][id].item<double>();
        accepted = sampler_.uniform(row_) * q < p;
        if (!accepted) id = sampler_.draw((wanted - guesses[i]).clamp_min_(0), row_);
      } else {
        id = sampler_.draw(wanted, row_);
      }
      NewToken token{row_, id};
      if (options_.log_probabilities)
        token.log_probability = log_probabilities_of(own.unsqueeze(0))[0][id].item<double>();
      got.push_back(token);
      push(id);
      if (!accepted) break;
      ++result.accepted;
    }
    result.drafted += static_cast<std::int64_t>(count);
    target_.keep(begin + got.size() - 1);
    draft_.keep(begin + got.size() - 1);
    return got;
  }

  bool ends(const TokenIds& new_ids) const { return rules_.ends(new_ids, states_[new_ids.size()]); }

 private:
  std::size_t most_tokens() const {
    return given_ + static_cast<std::size_t>(options_.max_new_tokens + options_.draft_tokens);
  }

  // Distribution [V] of the next token.
  at::Tensor distribution(const at::Tensor& logits) const {
    const at::Tensor allowed = rules_.apply(logits.unsqueeze(0), {{&tokens_, given_}}, {states_.back()});
    return sampler_.distribution(allowed)[0];
  }

  void push(TokenId id) {
    states_.push_back(rules_.next_state(states_.back(), id));
    tokens_.push_back(id);
  }

  void cut(std::size_t length) {
    tokens_.resize(length);
    states_.resize(length - given_ + 1);
  }

  const GenerationOptions& options_;
  const LogitsRules& rules_;
  TokenSampler& sampler_;
  std::size_t row_, given_;
  TokenIds tokens_;
  std::vector<std::int64_t> states_;  // of the constraint: the first, and after each new token
  RowSession target_, draft_;
};

void check(DecodingModel& model, const GenerationOptions& options) {
  const TransformerConfig &own = model.config(), &draft = options.draft->config();
  if (own.vocab_size != draft.vocab_size)
    throw Error("the draft model has a vocabulary of ", draft.vocab_size, " ids, the model one of ",
                own.vocab_size);
  if (own.shape != draft.shape)
    throw Error("the draft model must be a decoder, or an encoder-decoder, as the model is");
}

class DraftingLoop : public TokenLoop {
 public:
  explicit DraftingLoop(GenerationTask& task)
      : task_(task),
        firsts_(first_tokens(task.model.config(), task.prompts, task.options.decoder_start_token_id,
                             task.options.context)),
        rules_(task.options, task.model.config().vocab_size),
        sampler_(task.options.sampling, task.prompts.size()) {
    // The draft model reads them, too.
    first_tokens(task.options.draft->config(), task.prompts, firsts_.empty() ? 0 : firsts_[0][0]);
    task.result.ids.resize(task.prompts.size());
    if (task.options.log_probabilities) task.result.log_probabilities.resize(task.prompts.size());
  }

  bool going() const override { return row_ < task_.prompts.size(); }

  bool step() override {
    if (!drafted_)
      drafted_.emplace(task_.model, task_.prompts[row_], firsts_[row_], row_, task_.options, rules_,
                       sampler_);
    TokenIds& ids = task_.result.ids[row_];
    bool ends = false;
    for (const NewToken& token : drafted_->step(task_.result)) {
      ids.push_back(token.id);
      if (task_.options.log_probabilities)
        task_.result.log_probabilities[row_].push_back(token.log_probability);
      ends = drafted_->ends(ids);
      if (task_.on_token && !task_.on_token(token)) return false;
      if (ends) break;
    }
    if (ends || static_cast<std::int64_t>(ids.size()) >= task_.options.max_new_tokens) {
      drafted_.reset();
      ++row_;
    }
    return true;
  }

 private:
  GenerationTask& task_;
  std::vector<TokenIds> firsts_;
  LogitsRules rules_;
  TokenSampler sampler_;
  std::size_t row_ = 0;  // now generating
  std::optional<DraftedRow> drafted_;
};

}  // namespace

std::unique_ptr<TokenLoop> drafting_loop(GenerationTask& task) {
  check(task.model, task.options);
  return std::make_unique<DraftingLoop>(task);
}

}  // namespace zoo
