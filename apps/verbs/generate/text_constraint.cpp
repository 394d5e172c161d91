#include "apps/verbs/generate/text_constraint.h"

#include <algorithm>
#include <limits>
#include <map>

#include <ATen/ops/full.h>
#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json_text.h"
#include "data/corpora/text_file.h"
#include "tokenizer/constraint/json_schema.h"
#include "tokenizer/constraint/regular_expression.h"
#include "tokenizer/constraint/token_automaton.h"

namespace zoo {
namespace {

// A token automaton for a model whose vocabulary may be larger than the tokenizer's. The steps of a state are
// computed when a row first reaches it.
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
      throw Error("the shortest text that fits the constraint takes ", needed,
                  " tokens, more than --max_new_tokens, which is ", tokens);
    return automaton_->begin();
  }

  at::Tensor mask(std::int64_t number, std::int64_t tokens) const override {
    const auto state = static_cast<TokenAutomaton::State>(number);
    const Known& known = look_up(state);
    if (known.farthest < tokens) return known.mask;
    at::Tensor mask = at::full({vocab_size_}, kForbidden, at::kFloat);
    allow_ends(mask, state);
    for (const auto& [id, next] : known.steps) {
      if (automaton_->distance(next) < tokens) mask.mutable_data_ptr<float>()[id] = 0;
    }
    return mask;
  }

  std::int64_t next(std::int64_t state, TokenId id) const override {
    if (state == TokenAutomaton::kDead || !text_ids_.contains(id)) return TokenAutomaton::kDead;
    return automaton_->next(static_cast<TokenAutomaton::State>(state), id);
  }

  bool complete(std::int64_t number) const override {
    const auto state = static_cast<TokenAutomaton::State>(number);
    return automaton_->accepts(state) && look_up(state).steps.empty();
  }

 private:
  static constexpr float kForbidden = -std::numeric_limits<float>::infinity();

  struct Known {
    std::vector<TokenAutomaton::Step> steps;
    at::Tensor mask;            // allowed tokens
    std::int64_t farthest = 0;  // the largest distance to an end after a step
  };

  void allow_ends(at::Tensor& mask, TokenAutomaton::State state) const {
    if (!automaton_->accepts(state)) return;
    for (const TokenId id : ends_) {
      if (id < vocab_size_) mask.mutable_data_ptr<float>()[id] = 0;
    }
  }

  const Known& look_up(TokenAutomaton::State state) const {
    const auto [place, is_new] = known_.try_emplace(state);
    Known& known = place->second;
    if (!is_new) return known;
    known.mask = at::full({vocab_size_}, kForbidden, at::kFloat);
    allow_ends(known.mask, state);
    for (const TokenAutomaton::Step& step : automaton_->steps(state)) {
      if (!text_ids_.contains(step.id)) continue;
      known.steps.push_back(step);
      known.mask.mutable_data_ptr<float>()[step.id] = 0;
      known.farthest = std::max(known.farthest, automaton_->distance(step.next));
    }
    return known;
  }

  std::shared_ptr<const TokenAutomaton> automaton_;
  TokenIds ends_;
  std::int64_t vocab_size_;
  TextIds text_ids_;
  mutable std::map<TokenAutomaton::State, Known> known_;
};

PatternPtr pattern_of(const GenerateFlags& flags) {
  if (flags.regex) return parse_regular_expression(*flags.regex).pattern;
  const std::string text = read_text(flags.json_schema);
  const auto schema = parse_ordered_json(text);
  if (schema.is_discarded()) throw Error(flags.json_schema, " is not JSON");
  return json_schema_pattern(schema);
}

}  // namespace

std::shared_ptr<const TokenConstraint> make_text_constraint(const GenerateFlags& flags,
                                                            const GenerateSession& session) {
  if (!flags.regex && flags.json_schema.empty()) return nullptr;
  try {
    return make_text_constraint(
        make_token_automaton(pattern_of(flags), session, token_bytes(*session.tokenizer)), session);
  } catch (const Error& error) {
    throw Error(flags.regex ? "--regex: " : "--json_schema: ", error.what());
  }
}

std::shared_ptr<const TokenAutomaton> make_token_automaton(const PatternPtr& pattern,
                                                           const GenerateSession& session,
                                                           std::vector<std::string> tokens) {
  for (const TokenId id : session.defaults.eos_token_ids) {
    if (id < static_cast<std::int64_t>(tokens.size())) tokens[static_cast<std::size_t>(id)].clear();
  }
  return std::make_shared<TokenAutomaton>(pattern, std::move(tokens));
}

std::shared_ptr<const TokenConstraint> make_text_constraint(std::shared_ptr<const TokenAutomaton> automaton,
                                                            const GenerateSession& session) {
  return std::make_shared<TextConstraint>(std::move(automaton), session);
}

}  // namespace zoo
