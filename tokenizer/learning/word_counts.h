#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace zoo {

/// How often each word occurs in a training text: all that learning a vocabulary needs of it.
class WordCounts {
 public:
  void add(std::string_view word, std::int64_t times = 1) {
    const auto found = counts_.find(word);
    if (found != counts_.end()) {
      found->second += times;
    } else {
      counts_.emplace(word, times);
    }
  }

  std::size_t size() const { return counts_.size(); }
  auto begin() const { return counts_.begin(); }
  auto end() const { return counts_.end(); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
  };

  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> counts_;
};

}  // namespace zoo
