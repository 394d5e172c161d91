#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "tokenizer/learning/merge_trainer.h"

namespace zoo {

/// Calls `take` for the lines of a text with their line ends ('\n' only), as `tokenizers` feeds its trainers,
/// and says how many bytes are done.
void for_each_training_line(std::string_view text, const TrainingProgress& on_progress,
                            const std::function<void(std::string_view line)>& take);

/// {token: id}, as model.vocab and vocab.json hold it.
nlohmann::json vocabulary_json(std::span<const std::string> tokens);

/// The "added_tokens" of tokenizer.json for special tokens, which are among `tokens`.
nlohmann::json added_tokens_json(std::span<const std::string> special_tokens,
                                 std::span<const std::string> tokens);

}  // namespace zoo
