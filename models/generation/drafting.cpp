#include <algorithm>
#include <optional>

#include "data/base/error.h"
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
    const auto unread = tokens.begin() + static_cast<std::ptrdiff_t>(next);
    if (count == 1) return session_->read({TokenIds(unread, tokens.end())});
    // Of a long prompt no logits are wanted.
    const auto last = tokens.end() - static_cast<std::ptrdiff_t>(count);
    if (unread < last) session_->read({TokenIds(unread, last)});
    return session_->read({TokenIds(last, tokens.end())}, DecodingSession::Logits::kAll)[0];
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

// The text so far as a draft: what followed its last tokens when they stood there before.
class TextLookup {
 public:
  explicit TextLookup(std::int64_t most) : most_(static_cast<std::size_t>(most)), wanted_(most_) {}

  // At most `most` tokens after the latest earlier place that ends like `tokens`, by three, else two or one.
  TokenIds find(const TokenIds& tokens, std::size_t most) {
    constexpr std::size_t kLongest = 3;
    most = std::min(most, wanted_);
    if (wanted_ == 0 && ++waited_ == kWait) wanted_ = 1;
    for (std::size_t n = std::min(kLongest, tokens.size() - 1); n > 0 && most > 0; --n) {
      const auto last = tokens.end() - static_cast<std::ptrdiff_t>(n);
      const auto found = std::find_end(tokens.begin(), tokens.end() - 1, last, tokens.end());
      if (found == tokens.end() - 1) continue;
      const auto next = found + static_cast<std::ptrdiff_t>(n);
      return {next, next + std::min<std::ptrdiff_t>(tokens.end() - next, static_cast<std::ptrdiff_t>(most))};
    }
    return {};
  }

  // Rejected drafts cost time: they halve the number, down to none for a while; accepted ones double it.
  void learn(std::size_t drafted, std::size_t accepted) {
    if (drafted == 0) return;
    wanted_ = accepted == drafted ? std::min(most_, 2 * wanted_) : std::min(wanted_ / 2 + accepted, most_);
    waited_ = 0;
  }

 private:
  static constexpr std::size_t kWait = 16;  // tokens
  std::size_t most_, wanted_, waited_ = 0;
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
        states_{rules.first_state(given_)},
        prompt_(model.config().shape == Shape::kEncoderDecoder ? prompt : TokenIds()),
        lookup_(options.prompt_lookup_num_tokens),
        target_(model, prompt, most_tokens(), options) {
    if (options.draft != nullptr) draft_.emplace(*options.draft, prompt, most_tokens(), options);
  }

  // Drafts, verifies and accepts tokens: returns at least one, with log-probabilities if asked for.
  std::vector<NewToken> step(GenerationResult& result) {
    const std::size_t begin = tokens_.size(), written = begin - given_;
    // One token always comes from the model itself.
    const std::size_t rest = static_cast<std::size_t>(options_.max_new_tokens) - written - 1;
    const std::size_t most = std::min(rest, target_.room(begin));
    std::vector<at::Tensor> guesses;  // distributions that a model's drafts were drawn from
    const std::size_t model_drafts =
        draft_ ? std::min(static_cast<std::size_t>(options_.draft_tokens), most) : 0;
    for (std::size_t i = 0; i < model_drafts && !ended(); ++i) {
      guesses.push_back(distribution(draft_->read(tokens_, 1)[0]));
      push(sampler_.draw(guesses.back(), row_));
    }
    // The constraint may forbid one of these, which is then rejected.
    if (!draft_) {
      TokenIds text = prompt_;
      text.insert(text.end(), tokens_.begin(), tokens_.end());
      const TokenIds found = lookup_.find(text, most);
      tokens_.insert(tokens_.end(), found.begin(), found.end());
    }
    const std::size_t count = tokens_.size() - begin;
    const TokenIds drafts(tokens_.begin() + static_cast<std::ptrdiff_t>(begin), tokens_.end());
    const at::Tensor logits = target_.read(tokens_, count + 1);
    tokens_.resize(begin);
    states_.resize(written + 1);

    std::vector<NewToken> got;
    for (std::size_t i = 0; i <= count; ++i) {
      const at::Tensor own = logits[static_cast<std::int64_t>(i)];
      const at::Tensor wanted = distribution(own);
      TokenId id = 0;
      bool accepted = false;
      if (i < count) {
        // Leviathan et al., algorithm 1: keeps a draft with probability min(1, p / q), else draws from max(0,
        // p - q). What the text drafts has q = 1.
        id = drafts[i];
        const auto p = wanted[id].item<double>(), q = draft_ ? guesses[i][id].item<double>() : 1.0;
        accepted = sampler_.uniform(row_) * q < p;
        if (!accepted) {
          const at::Tensor others = draft_ ? (wanted - guesses[i]).clamp_min_(0) : wanted.clone();
          if (!draft_) others[id] = 0;
          id = sampler_.draw(others, row_);
        }
      } else {
        id = sampler_.draw(wanted, row_);
      }
      NewToken token{row_, id};
      if (options_.log_probabilities)
        token.log_probability = log_probabilities_of(own.unsqueeze(0))[0][id].item<double>();
      got.push_back(token);
      push(id);
      result.accepted += accepted ? 1 : 0;
      if (!accepted || ended()) break;
    }
    result.drafted += static_cast<std::int64_t>(count);
    target_.keep(begin + got.size() - 1);
    if (draft_) draft_->keep(begin + got.size() - 1);
    else lookup_.learn(count, got.size() - 1);
    return got;
  }

  bool ends(const TokenIds& new_ids) const { return rules_.ends(new_ids, states_[new_ids.size()]); }

 private:
  std::size_t most_tokens() const {
    const std::int64_t drafts =
        options_.draft != nullptr ? options_.draft_tokens : options_.prompt_lookup_num_tokens;
    return given_ + static_cast<std::size_t>(options_.max_new_tokens + drafts);
  }

  // Distribution [V] of the next token.
  at::Tensor distribution(const at::Tensor& logits) const {
    const at::Tensor allowed = rules_.apply(logits.unsqueeze(0), {{&tokens_, given_}}, {states_.back()});
    return sampler_.distribution(allowed)[0];
  }

  // After that no token is allowed where a constraint is complete.
  bool ended() const {
    return tokens_.size() > given_ &&
           rules_.ends({tokens_.begin() + static_cast<std::ptrdiff_t>(given_), tokens_.end()},
                       states_.back());
  }

  void push(TokenId id) {
    states_.push_back(rules_.next_state(states_.back(), id, tokens_.size()));
    tokens_.push_back(id);
  }

  const GenerationOptions& options_;
  const LogitsRules& rules_;
  TokenSampler& sampler_;
  std::size_t row_, given_;
  TokenIds tokens_;
  std::vector<std::int64_t> states_;  // of the constraint: the first, and after each new token
  TokenIds prompt_;                   // of an encoder-decoder; a decoder's is in tokens_
  TextLookup lookup_;
  RowSession target_;
  std::optional<RowSession> draft_;
};

class DraftingLoop : public TokenLoop {
 public:
  explicit DraftingLoop(GenerationTask& task)
      : task_(task),
        firsts_(first_tokens(task.model.config(), task.prompts, task.options.decoder_start_token_id,
                             task.options.context)),
        rules_(task.options, task.model.config().vocab_size),
        sampler_(task.options.sampling, task.prompts.size()) {
    if (task.options.draft != nullptr)  // it reads them, too
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
  if (task.options.draft != nullptr) {
    const TransformerConfig &own = task.model.config(), &draft = task.options.draft->config();
    if (own.vocab_size != draft.vocab_size)
      throw Error("the draft model has a vocabulary of ", draft.vocab_size, " ids, the model one of ",
                  own.vocab_size);
    if (own.shape != draft.shape)
      throw Error("the draft model must be a decoder, or an encoder-decoder, as the model is");
  }
  return std::make_unique<DraftingLoop>(task);
}

}  // namespace zoo
