#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/encoding.h"

namespace zoo {

/// A question with a text that may hold its answer (as SQuAD: Rajpurkar et al., 2016 and 2018).
struct Question {
  std::int64_t line = 0;
  std::string question, context;
  ByteRange answer;  // in the context; empty: the context does not answer it
};

/// The questions of a text, with the columns question, context and answer, and answer_start where the answer
/// begins, in characters; without it the first place where the context says the answer. Of a `name` that ends
/// in .jsonl a line is an object with these keys, or with Hugging Face's "answers": {"text": […],
/// "answer_start": […]}, of which the first counts. An empty answer is none. Else a line is columns with tabs
/// between them. Throws Error naming file and line, also where the answer does not stand where it should.
std::vector<Question> parse_questions(std::string_view text, const std::string& name);

}  // namespace zoo
