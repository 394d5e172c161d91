#pragma once

/// @file
/// Use:
///
///     for (const zoo::Question& each : zoo::parse_questions(text, "questions.jsonl"))
///       std::cout << each.question << "\n";

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/examples/file_columns.h"
#include "tokenizer/encoding.h"

namespace zoo {

/// A question and a context that may hold the answer (SQuAD: Rajpurkar et al., 2016 and 2018).
struct Question {
  std::int64_t line = 0;
  std::string question, context;
  ByteRange answer;  // bytes of the context; empty: unanswerable
};

/// Reads questions with the columns question, context, answer and answer_start, the position of the answer in
/// characters (default: the first match in the context). If `name` ends in .jsonl, a line is an object with
/// these keys, or with Hugging Face's "answers": {"text": […], "answer_start": […]}, of which the first is
/// used. Otherwise a line is tab-separated columns. An empty answer means unanswerable. Throws Error naming
/// file and line, also if the answer is not at its position.
std::vector<Question> parse_questions(std::string_view text, const std::string& name, FileColumns& names);
std::vector<Question> parse_questions(std::string_view text, const std::string& name);

}  // namespace zoo
