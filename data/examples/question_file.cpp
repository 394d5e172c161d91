#include "data/examples/question_file.h"

#include <optional>

#include <nlohmann/json.hpp>

#include "data/base/ending.h"
#include "data/base/error.h"
#include "data/base/lines.h"
#include "data/examples/record_file.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

struct RawAnswer {
  std::string text;
  std::optional<std::int64_t> start;  // in characters
};

std::optional<std::size_t> byte_of(std::string_view text, std::int64_t character) {
  std::size_t at = 0;
  for (; character > 0 && at < text.size(); --character) next_code_point(text, at);
  return character == 0 ? std::optional<std::size_t>(at) : std::nullopt;
}

// White space at its ends is no part of an answer: tokens may leave it out.
ByteRange without_spaces(std::string_view text, std::size_t begin) {
  constexpr const char* kSpaces = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return {};
  return {static_cast<std::uint32_t>(begin + first),
          static_cast<std::uint32_t>(begin + text.find_last_not_of(kSpaces) + 1)};
}

void place_answer(const RawAnswer& answer, const Line& line, Question& question) {
  if (answer.text.empty()) return;
  std::size_t begin = question.context.find(answer.text);
  if (answer.start) {
    const auto byte = byte_of(question.context, *answer.start);
    begin = byte && question.context.compare(*byte, answer.text.size(), answer.text) == 0 ? *byte
                                                                                          : std::string::npos;
  }
  if (begin == std::string::npos)
    throw Error(line, ": the context does not contain the answer '", answer.text, "'",
                answer.start ? " at character " + std::to_string(*answer.start) : "");
  question.answer = without_spaces(answer.text, begin);
}

std::optional<std::int64_t> number_of(const std::string& text, const Line& line) {
  if (text.empty()) return std::nullopt;
  const auto number = number_in<std::int64_t>(text);
  if (number.value_or(-1) < 0)
    throw Error(line, ": 'answer_start' must be a number of characters, found '", text, "'");
  return number;
}

RawAnswer read_answers(const nlohmann::json& answers, const Line& line) {
  const bool lists = answers.is_object() && answers.contains("text") && answers["text"].is_array();
  if (!lists) throw Error(line, ": 'answers' must hold a list under 'text'");
  if (answers["text"].empty()) return {};
  const auto starts = answers.find("answer_start");
  const bool good = answers["text"][0].is_string() && starts != answers.end() && starts->is_array() &&
                    !starts->empty() && (*starts)[0].is_number_unsigned();
  if (!good) throw Error(line, ": 'answers' must hold texts, and as many numbers under 'answer_start'");
  return {answers["text"][0].get<std::string>(), (*starts)[0].get<std::int64_t>()};
}

Question read_question(const Line& line, FileColumns& names) {
  static const std::vector<std::string> known{"question", "context", "answers", "answer", "answer_start"};
  const nlohmann::json object = names.read_object(line, known);
  Question question{
      line.number, text_under(object, "question", line), text_under(object, "context", line), {}};
  for (const auto* part : {&question.question, &question.context}) {
    if (part->empty())
      throw Error(line, ": '", part == &question.context ? "context" : "question", "' is missing or empty");
  }
  const auto answers = object.find("answers");
  if (answers != object.end()) {
    place_answer(read_answers(*answers, line), line, question);
  } else {
    const std::string start = label_under(object, "answer_start", line);
    place_answer({text_under(object, "answer", line), number_of(start, line)}, line, question);
  }
  return question;
}

}  // namespace

std::vector<Question> parse_questions(std::string_view text, const std::string& name) {
  FileColumns names;
  return parse_questions(text, name, names);
}

std::vector<Question> parse_questions(std::string_view text, const std::string& name, FileColumns& names) {
  std::vector<Question> questions;
  if (ending_of(name) == ".jsonl") {
    require_utf8(text, name);
    for (const Line& line : lines_of(text, name)) questions.push_back(read_question(line, names));
    if (questions.empty()) throw Error(name, ": holds no question");
    return questions;
  }
  for (Record& record :
       parse_records(text, name, {{"question", "context"}, {"answer", "answer_start"}}, names)) {
    Question question{record.line, std::move(record.fields[0]), std::move(record.fields[1]), {}};
    const Line line{record.line, {}, name};
    place_answer({record.fields[2], number_of(record.fields[3], line)}, line, question);
    questions.push_back(std::move(question));
  }
  return questions;
}

}  // namespace zoo
