#include "models/tasks/text_constraint.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <utility>

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "data/base/field_error.h"

namespace zoo {
namespace {

// A token automaton for a model whose vocabulary may be larger than the tokenizer's. The tokens that a state
// allows are computed when a row reaches it and kept as bits, until later states need the room.
class TextConstraint : public TokenConstraint {
 public:
  TextConstraint(std::shared_ptr<const TokenAutomaton> automaton, const GenerateSession& session)
      : automaton_(std::move(automaton)),
        ends_(session.defaults.eos_token_ids),
        vocab_size_(session.vocab_size()),
        text_ids_(session) {}

  std::int64_t begin(std::int64_t tokens) const override {
    const std::int64_t needed = automaton_->distance(automaton_->begin());
    if (needed > tokens)
      throw FieldError("the shortest text that fits the constraint takes ", needed, " tokens, more than the ",
                       tokens, " that ", Field{"max_new_tokens"}, " leaves");
    return automaton_->begin();
  }

  at::Tensor mask(std::int64_t number, std::int64_t tokens) const override {
    const auto state = static_cast<TokenAutomaton::State>(number);
    const Known& known = look_up(state);
    at::Tensor mask = at::full({vocab_size_}, kForbidden, at::kFloat);
    auto* logits = mask.mutable_data_ptr<float>();
    if (known.farthest < tokens) {
      for (std::size_t id = 0; id < known.allowed.size(); ++id)
        if (known.allowed[id]) logits[id] = 0;
    } else {
      for (const auto& [id, next] : steps(state))
        if (automaton_->distance(next) < tokens) logits[id] = 0;
    }
    if (!automaton_->accepts(state)) return mask;
    for (const TokenId id : ends_)
      if (id < vocab_size_) logits[id] = 0;
    return mask;
  }

  std::int64_t next(std::int64_t state, TokenId id) const override {
    if (state == TokenAutomaton::kDead || !text_ids_.contains(id)) return TokenAutomaton::kDead;
    return automaton_->next(static_cast<TokenAutomaton::State>(state), id);
  }

  bool complete(std::int64_t number) const override {
    const auto state = static_cast<TokenAutomaton::State>(number);
    return automaton_->accepts(state) && !look_up(state).goes_on;
  }

 private:
  static constexpr float kForbidden = -std::numeric_limits<float>::infinity();

  static constexpr std::size_t kMostBits = std::size_t{1} << 27;  // of all states that are kept: 16 MB

  struct Known {
    std::vector<bool> allowed;  // of each token; end tokens are not among them
    bool goes_on = false;       // some are
    std::int64_t farthest = 0;  // the largest distance to an end after a step
  };

  std::vector<TokenAutomaton::Step> steps(TokenAutomaton::State state) const {
    std::vector<TokenAutomaton::Step> found = automaton_->steps(state);
    std::erase_if(found, [&](const TokenAutomaton::Step& step) { return !text_ids_.contains(step.id); });
    return found;
  }

  const Known& look_up(TokenAutomaton::State state) const {
    if (const auto found = known_.find(state); found != known_.end()) return found->second;
    if (known_.size() * static_cast<std::size_t>(vocab_size_) > kMostBits) {
      known_.erase(reached_.front());
      reached_.pop_front();
    }
    Known known{.allowed = std::vector<bool>(static_cast<std::size_t>(vocab_size_))};
    for (const TokenAutomaton::Step& step : steps(state)) {
      known.allowed[static_cast<std::size_t>(step.id)] = known.goes_on = true;
      known.farthest = std::max(known.farthest, automaton_->distance(step.next));
    }
    reached_.push_back(state);
    return known_[state] = std::move(known);
  }

  std::shared_ptr<const TokenAutomaton> automaton_;
  TokenIds ends_;
  std::int64_t vocab_size_;
  TextIds text_ids_;
  mutable std::map<TokenAutomaton::State, Known> known_;
  mutable std::deque<TokenAutomaton::State> reached_;  // the known ones, the oldest first
};

// States: how many bytes of the trigger end the text; then free text without a call; then the call's own.
class ToolConstraint final : public TokenConstraint {
 public:
  ToolConstraint(std::shared_ptr<const TokenAutomaton> automaton, const GenerateSession& session,
                 const ToolCallFormat& format)
      : automaton_(std::move(automaton)),
        call_(automaton_, session),
        vocab_size_(session.vocab_size()),
        trigger_(format.trigger()),
        only_first_(format.only_first()),
        free_(static_cast<std::int64_t>(trigger_.size())),
        first_(free_ + 1) {}

  std::int64_t begin(std::int64_t) const override { return 0; }

  at::Tensor mask(std::int64_t state, std::int64_t tokens) const override {
    if (state >= 0 && state < first_) return free_mask(state);
    const std::int64_t own = state < 0 ? state : state - first_;
    at::Tensor mask = call_.mask(own, tokens);
    // Begun too late to be completed: it goes on until it is cut.
    if (own >= 0 && mask.max().item<float>() < 0)
      return call_.mask(own, std::numeric_limits<std::int64_t>::max());
    return mask;
  }

  std::int64_t next(std::int64_t state, TokenId id) const override {
    if (state < 0 || state >= first_) return of_call(call_.next(state < 0 ? state : state - first_, id));
    return id < static_cast<TokenId>(automaton_->token_count()) ? after(state, automaton_->bytes_of(id))
                                                                : state;
  }

  bool complete(std::int64_t state) const override {
    return state >= first_ && call_.complete(state - first_);
  }

 private:
  std::int64_t of_call(std::int64_t own) const { return own < 0 ? own : own + first_; }

  // The state after more bytes of free text.
  std::int64_t after(std::int64_t state, std::string_view bytes) const {
    const std::string_view trigger = trigger_;
    for (std::size_t i = 0; i < bytes.size() && state != free_; ++i) {
      const std::string_view seen = trigger.substr(0, static_cast<std::size_t>(state));
      const auto ends_text = [&](std::size_t count) {  // the first `count` bytes of the trigger
        return trigger[count - 1] == bytes[i] && seen.ends_with(trigger.substr(0, count - 1));
      };
      std::size_t known = seen.size() + 1;
      while (known > 0 && !ends_text(known)) --known;
      if (only_first_ && known <= seen.size()) return free_;
      state = static_cast<std::int64_t>(known);
      if (known < trigger.size()) continue;
      const std::string_view rest = bytes.substr(i + 1);
      const auto called = automaton_->next(automaton_->begin(), trigger_);
      return of_call(rest.empty() ? called : automaton_->next(called, rest));
    }
    return state;
  }

  // Forbids tokens that end the trigger and go on with what is no call.
  at::Tensor free_mask(std::int64_t state) const {
    at::Tensor& mask = masks_[state];
    if (mask.defined()) return mask;
    mask = at::zeros({vocab_size_}, at::kFloat);
    for (TokenId id = 0; id < vocab_size_; ++id)
      if (next(state, id) < 0) mask.mutable_data_ptr<float>()[id] = -std::numeric_limits<float>::infinity();
    return mask;
  }

  std::shared_ptr<const TokenAutomaton> automaton_;
  TextConstraint call_;
  std::int64_t vocab_size_;
  std::string trigger_;
  bool only_first_;
  std::int64_t free_, first_;  // the state of free text for ever, and the call's first
  mutable std::map<std::int64_t, at::Tensor> masks_;
};

}  // namespace

std::shared_ptr<const TokenAutomaton> make_token_automaton(const PatternPtr& pattern,
                                                           const GenerateSession& session,
                                                           std::vector<std::string> tokens) {
  for (const TokenId id : session.defaults.eos_token_ids)
    if (id < static_cast<std::int64_t>(tokens.size())) tokens[static_cast<std::size_t>(id)].clear();
  return std::make_shared<TokenAutomaton>(pattern, std::move(tokens));
}

std::shared_ptr<const TokenConstraint> make_text_constraint(std::shared_ptr<const TokenAutomaton> automaton,
                                                            const GenerateSession& session) {
  return std::make_shared<TextConstraint>(std::move(automaton), session);
}

std::vector<std::string> tool_token_bytes(const GenerateSession& session, const ToolCallFormat& format,
                                          std::vector<std::string> bytes) {
  for (std::size_t id = 0; id < bytes.size(); ++id) {
    if (!bytes[id].empty()) continue;
    const std::string text =
        session.tokenizer->decode_with_special_tokens(TokenIds{static_cast<TokenId>(id)});
    for (const std::string* piece : {&format.begin, &format.middle, &format.between, &format.end})
      if (!text.empty() && piece->find(text) != std::string::npos) bytes[id] = text;
  }
  return bytes;
}

std::shared_ptr<const TokenConstraint> make_tool_constraint(std::shared_ptr<const TokenAutomaton> automaton,
                                                            const GenerateSession& session,
                                                            const ToolCallFormat& format) {
  return std::make_shared<ToolConstraint>(std::move(automaton), session, format);
}

}  // namespace zoo
