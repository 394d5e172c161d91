#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace zoo {

/// The number of times each word occurs in a training text, the only input of the trainers.
class WordCounts {
 public:
  void add(std::string_view word, std::int64_t times = 1);
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

/// Reports training progress: first "bytes" of the text read, then "tokens" learnt.
using TrainingProgress = std::function<void(std::string_view unit, std::int64_t done, std::int64_t total)>;

/// Calls `take` for each line of a text, line end included ('\n' only), as in `tokenizers`. Reports the bytes
/// done.
void for_each_training_line(std::string_view text, const TrainingProgress& on_progress,
                            const std::function<void(std::string_view line)>& take);

}  // namespace zoo
