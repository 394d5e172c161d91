#include "tokenizer/constraint/token_automaton.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "data/base/error.h"
#include "tokenizer/text/byte_level.h"

namespace zoo {
namespace {

// States times tokens. Up to this product, every token is tried in every state, which takes seconds.
constexpr std::size_t kMostSteps = 100'000'000;

}  // namespace

TokenAutomaton::TokenAutomaton(const PatternPtr& pattern, std::vector<std::string> tokens)
    : bytes_(pattern), tokens_(std::move(tokens)) {
  std::array<bool, 256> single{};
  TokenIds ids;
  for (std::size_t id = 0; id < tokens_.size(); ++id) {
    if (!tokens_[id].empty()) ids.push_back(static_cast<TokenId>(id));
    if (tokens_[id].size() == 1) single[static_cast<unsigned char>(tokens_[id][0])] = true;
  }
  std::ranges::sort(ids, [&](TokenId a, TokenId b) { return bytes_of(a) < bytes_of(b); });
  std::string_view before;
  for (const TokenId id : ids) {
    const std::string& own = bytes_of(id);
    const auto shared = static_cast<std::size_t>(
        std::mismatch(own.begin(), own.end(), before.begin(), before.end()).first - own.begin());
    sorted_.push_back({id, shared, own.size() - shared});
    rests_.append(own, shared);
    longest_ = std::max(longest_, own.size());
    before = own;
  }
  const bool every_byte = std::ranges::all_of(single, [](bool there) { return there; });
  std::vector<State> ends;
  for (State state = 0; std::cmp_less(state, bytes_.size()); ++state)
    if (accepts(state)) ends.push_back(state);
  const bool by_bytes = every_byte && bytes_.size() * sorted_.size() > kMostSteps;
  distances_ = distances_to(std::move(ends), by_bytes ? successors_by_bytes() : successors_by_tokens());
  if (distance(begin()) == kUnreachable)
    throw Error("the tokens of the vocabulary can write no text that fits the constraint");
}

// Calls visit(id, next) for each token that the byte automaton accepts in this state.
template <class Visit> void TokenAutomaton::visit_steps(State state, Visit visit) const {
  std::vector<State> path(longest_ + 1, kDead);  // the states after each byte of the token
  path[0] = state;
  std::size_t depth = 0;  // of the last one
  const char* rest = rests_.data();
  for (const SortedToken& token : sorted_) {
    const char* next = rest;
    rest += token.rest;
    depth = std::min(depth, token.shared);
    if (path[depth] == kDead) continue;  // a prefix shared with the tokens before it
    while (next != rest && path[depth] != kDead) {
      path[depth + 1] = bytes_.next(path[depth], static_cast<unsigned char>(*next++));
      ++depth;
    }
    if (path[depth] != kDead) visit(token.id, path[depth]);
  }
}

std::vector<std::vector<TokenAutomaton::State>> TokenAutomaton::successors_by_tokens() const {
  std::vector<std::vector<std::int32_t>> forward(bytes_.size());
  std::vector<bool> seen(bytes_.size(), false);
  std::vector<State> last_from(bytes_.size(), kDead);  // many tokens share a state, stored once
  std::vector<State> open{begin()};
  seen[0] = true;
  while (!open.empty()) {
    const State state = open.back();
    open.pop_back();
    auto& targets = forward[static_cast<std::size_t>(state)];
    visit_steps(state, [&](TokenId, State next) {
      if (std::exchange(last_from[static_cast<std::size_t>(next)], state) != state) targets.push_back(next);
    });
    for (const State next : targets) {
      if (seen[static_cast<std::size_t>(next)]) continue;
      seen[static_cast<std::size_t>(next)] = true;
      open.push_back(next);
    }
  }
  return forward;
}

std::vector<std::vector<TokenAutomaton::State>> TokenAutomaton::successors_by_bytes() const {
  std::vector<std::vector<std::int32_t>> forward(bytes_.size());
  for (std::size_t s = 0; s < bytes_.size(); ++s) {
    for (int byte = 0; byte < 256; ++byte) {
      const State next = bytes_.next(static_cast<State>(s), static_cast<unsigned char>(byte));
      if (next != kDead && (forward[s].empty() || forward[s].back() != next)) forward[s].push_back(next);
    }
  }
  return forward;
}

std::vector<TokenAutomaton::Step> TokenAutomaton::steps(State state) const {
  std::vector<Step> found;
  if (state == kDead) return found;
  visit_steps(state, [&](TokenId id, State next) {
    if (distance(next) != kUnreachable) found.push_back({id, next});
  });
  return found;
}

TokenAutomaton::State TokenAutomaton::next(State state, std::string_view bytes) const {
  if (bytes.empty()) return kDead;
  for (const char byte : bytes) {
    if (state == kDead) return kDead;
    state = bytes_.next(state, static_cast<unsigned char>(byte));
  }
  return state != kDead && distance(state) != kUnreachable ? state : kDead;
}

std::vector<std::string> token_bytes(const Tokenizer& tokenizer) {
  const auto count = static_cast<TokenId>(tokenizer.vocab_size());
  std::vector<std::string> bytes(static_cast<std::size_t>(count));
  // Each other token is decoded after one that is a letter, because some tokenizers drop a space at the
  // beginning of a text. A byte token would not do: bytes in a row are decoded as one run.
  TokenId before = 0;
  bool has_letter = false;
  for (TokenId id = 0; id < count; ++id) {
    const std::string text = tokenizer.decode(TokenIds{id}), token = tokenizer.token_text(id);
    const auto byte = token == text ? std::nullopt : fallback_byte(token);
    if (byte && token == fallback_token(*byte))
      bytes[static_cast<std::size_t>(id)] = static_cast<char>(*byte);
    if (has_letter || !bytes[static_cast<std::size_t>(id)].empty()) continue;
    before = id;
    has_letter = text.size() == 1 && std::isalpha(static_cast<unsigned char>(text[0])) != 0;
  }
  const std::size_t begin = tokenizer.decode(TokenIds{before}).size();
  for (TokenId id = 0; id < count; ++id) {
    std::string& own = bytes[static_cast<std::size_t>(id)];
    const std::string both = own.empty() ? tokenizer.decode(TokenIds{before, id}) : "";
    if (both.size() > begin) own = both.substr(begin);
  }
  return bytes;
}

}  // namespace zoo
