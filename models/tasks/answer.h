#pragma once

/// @file
/// Use:
///
///     const zoo::TextModel model = zoo::load_text_model(zoo::read_checkpoint_config("bert-squad"), {});
///     const zoo::AnswerRequest asked{.question = "Who created the heaven?", .context = genesis};
///     const zoo::ByteRange best = zoo::answer_question(model, asked).front().range;
///     std::cout << genesis.substr(best.begin, best.end - best.begin) << "\n";

#include <optional>
#include <string>
#include <vector>

#include "models/tasks/text_model.h"

namespace zoo {

/// Rules of transformers' question answering pipeline as in 4.49; later versions also add up the scores of
/// equal answers, out of more spans of each window. Version 5 has no such pipeline.
struct AnswerRules {
  std::int64_t max_answer_length = 15;  // tokens
  std::int64_t top_k = 1;
  bool impossible = false;     // "no answer" is one of the answers, with the least score of all windows
  bool align_to_words = true;  // an answer begins and ends with whole words
};

struct Answer {
  ByteRange range;     // of the context; empty: no answer
  float score = 0.0F;  // product of the probabilities of first and last token
};

/// A question about a text of any length, which is read in windows that overlap.
struct AnswerRequest {
  std::string question, context;
  std::optional<std::int64_t> max_length;  // tokens of a window; none: the model's limit, at most 384
  std::optional<std::int64_t> stride;      // tokens that windows share; none: half of a window, at most 128
  AnswerRules rules = {};
};

/// The best answers, best first, from a model with a question answering head; a piece is a window. Throws
/// UnfitField for a max_length beyond the model's, FieldError for a stride below 0 and another number below
/// 1, Error for another head, for a stride that leaves a window no room and for a tokenizer without offsets.
std::vector<Answer> answer_question(const TextModel& model, const AnswerRequest& asked,
                                    const RunPass& run = run_at_once);

}  // namespace zoo
