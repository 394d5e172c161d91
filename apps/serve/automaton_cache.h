#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "tokenizer/constraint/token_automaton.h"

namespace zoo {

/// The automata of the constraints that requests named last. Clients send the same schema again and again,
/// and to build its automaton takes up to seconds of a core: one is built at a time, whoever asks.
class AutomatonCache {
 public:
  using Automaton = std::shared_ptr<const TokenAutomaton>;

  /// The automaton of a key, from build() if it is not among the last. Throws what build() throws.
  Automaton get(const std::string& key, const std::function<Automaton()>& build);

  /// How often build() was called.
  std::int64_t built() const { return built_; }

 private:
  Automaton find(const std::string& key);

  std::mutex building_, reading_;
  std::list<std::pair<std::string, Automaton>> recent_;  // the last one used first
  std::atomic<std::int64_t> built_ = 0;
};

}  // namespace zoo
