#include "tokenizer/learning/trained_files.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace zoo {

using nlohmann::json;

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

json vocabulary_json(std::span<const std::string> tokens) {
  json vocabulary = json::object();
  for (std::size_t id = 0; id < tokens.size(); ++id) vocabulary[tokens[id]] = id;
  return vocabulary;
}

json added_tokens_json(std::span<const std::string> special_tokens, std::span<const std::string> tokens) {
  json added = json::array();
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (std::find(special_tokens.begin(), special_tokens.end(), tokens[id]) == special_tokens.end()) continue;
    added.push_back({{"id", id},
                     {"content", tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  return added;
}

}  // namespace zoo
