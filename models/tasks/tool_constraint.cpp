#include "models/tasks/tool_constraint.h"

#include <limits>
#include <map>
#include <utility>

#include <ATen/ops/zeros.h>

namespace zoo {
namespace {

// States: how many bytes of the trigger end the text; then free text without a call; then the call's own.
class ToolConstraint final : public TokenConstraint {
 public:
  ToolConstraint(std::shared_ptr<const TokenAutomaton> automaton, const GenerateSession& session,
                 const ToolCallFormat& format)
      : automaton_(std::move(automaton)),
        call_(make_text_constraint(automaton_, session)),
        vocab_size_(session.vocab_size()),
        trigger_(format.trigger()),
        only_first_(format.only_first()),
        free_(static_cast<std::int64_t>(trigger_.size())),
        first_(free_ + 1) {}

  std::int64_t begin(std::int64_t) const override { return 0; }

  at::Tensor mask(std::int64_t state, std::int64_t tokens) const override {
    if (state >= 0 && state < first_) return free_mask(state);
    const std::int64_t own = state < 0 ? state : state - first_;
    at::Tensor mask = call_->mask(own, tokens);
    // Begun too late to be completed: it goes on until it is cut.
    if (own >= 0 && mask.max().item<float>() < 0)
      return call_->mask(own, std::numeric_limits<std::int64_t>::max());
    return mask;
  }

  std::int64_t next(std::int64_t state, TokenId id) const override {
    if (state < 0 || state >= first_) return of_call(call_->next(state < 0 ? state : state - first_, id));
    return id < static_cast<TokenId>(automaton_->token_count()) ? after(state, automaton_->bytes_of(id))
                                                                : state;
  }

  bool complete(std::int64_t state) const override {
    return state >= first_ && call_->complete(state - first_);
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
  std::shared_ptr<const TokenConstraint> call_;
  std::int64_t vocab_size_;
  std::string trigger_;
  bool only_first_;
  std::int64_t free_, first_;  // the state of free text for ever, and the call's first
  mutable std::map<std::int64_t, at::Tensor> masks_;
};

}  // namespace

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
