#pragma once

#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace zoo {

/// The conversations of the last answers, as JSON texts; beyond a number or size the oldest are forgotten.
class ConversationStore {
 public:
  void put(std::string id, std::string conversation) {
    constexpr std::size_t kMost = 1000, kMostBytes = std::size_t{64} << 20;
    const std::lock_guard lock(mutex_);
    bytes_ += conversation.size();
    all_.emplace_back(std::move(id), std::move(conversation));
    for (; all_.size() > kMost || bytes_ > kMostBytes; all_.pop_front()) bytes_ -= all_.front().second.size();
  }

  std::optional<std::string> get(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    const auto place = std::ranges::find(all_, id, &std::pair<std::string, std::string>::first);
    return place == all_.end() ? std::nullopt : std::optional(place->second);
  }

 private:
  mutable std::mutex mutex_;
  std::deque<std::pair<std::string, std::string>> all_;
  std::size_t bytes_ = 0;
};

}  // namespace zoo
