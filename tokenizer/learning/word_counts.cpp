#include "tokenizer/learning/word_counts.h"

#include <algorithm>

namespace zoo {

void WordCounts::add(std::string_view word, std::int64_t times) {
  const auto found = counts_.find(word);
  if (found != counts_.end()) {
    found->second += times;
  } else {
    counts_.emplace(word, times);
  }
}

void for_each_training_line(std::string_view text, const TrainingProgress& on_progress,
                            const std::function<void(std::string_view line)>& take) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t line_end = std::min(text.find('\n', at), text.size() - 1) + 1;
    take(text.substr(at, line_end - at));
    at = line_end;
    if (on_progress) {
      on_progress("bytes", static_cast<std::int64_t>(at), static_cast<std::int64_t>(text.size()));
    }
  }
}

}  // namespace zoo
