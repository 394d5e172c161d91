#include "apps/serve/automaton_cache.h"

#include <algorithm>

namespace zoo {
namespace {

// The largest automata take 50 MB each.
constexpr std::size_t kMost = 8;

}  // namespace

AutomatonCache::Automaton AutomatonCache::find(const std::string& key) {
  const std::lock_guard lock(reading_);
  const auto found = std::ranges::find(recent_, key, &std::pair<std::string, Automaton>::first);
  if (found == recent_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found);
  return found->second;
}

AutomatonCache::Automaton AutomatonCache::get(const std::string& key,
                                              const std::function<Automaton()>& build) {
  if (Automaton known = find(key)) return known;
  const std::lock_guard one_at_a_time(building_);
  if (Automaton known = find(key)) return known;  // built while this request waited
  ++built_;
  Automaton automaton = build();
  const std::lock_guard lock(reading_);
  recent_.emplace_front(key, automaton);
  if (recent_.size() > kMost) recent_.pop_back();
  return automaton;
}

}  // namespace zoo
