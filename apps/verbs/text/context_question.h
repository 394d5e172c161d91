#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/tasks/answer_spans.h"
#include "models/tasks/run_piece.h"
#include "apps/verbs/text/text_model.h"

namespace zoo {

/// A question about a text of any length, which is read in windows that overlap.
struct ContextQuestion {
  std::string question, context;
  std::optional<std::int64_t> max_length;  // tokens of a window; none: the model's limit, at most 384
  std::optional<std::int64_t> stride;      // tokens that windows share; none: half of a window, at most 128
};

/// The best answers, best first, from a model with a question answering head; a piece is a window. Throws
/// Error for a max_length beyond the model's, a stride that leaves a window no room, and a tokenizer without
/// offsets.
std::vector<Answer> answer_question(const TextModel& model, const ContextQuestion& asked,
                                    const AnswerRules& rules, const RunPiece& run = run_at_once);

}  // namespace zoo
