#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/tasks/generate_session.h"

namespace zoo {

/// Streams one row to std::cout: whole characters only, up to the first stop string, optionally with each
/// token coloured by its probability. Prints the text as written_text().
class RowPrinter {
 public:
  RowPrinter(const GenerateSession& session, bool color) : text_(session), color_(color) {}

  /// Prints the prompt, in which stop strings have no effect.
  void print_given(const TokenIds& prompt);
  void print(const NewToken& token);
  /// Prints the held-back text and the end of the line.
  void finish();

 private:
  void show(std::string_view text, std::size_t held_before, const char* color);

  RowText text_;
  bool color_;
  std::vector<std::pair<std::size_t, const char*>> colors_;  // of the text held back: bytes, and their colour
};

void print_json(const GenerationResult& result, const GenerateSession& session);

/// Prints one line on standard error: tokens, seconds, and the speeds of prefill and decoding.
void print_timing(const GenerationResult& result);

/// Reads lines of standard input, edited where it is a terminal, until it ends or `answer` returns false. An
/// Error of `answer` is printed, and the next line is read.
void answer_lines(const std::function<bool(const std::string&)>& answer);

/// Generates one row and streams it to standard output; timings go to standard error. Ctrl-C ends the row.
GenerationResult stream_reply(DecodingModel& model, const GenerateSession& session, GenerationOptions options,
                              const TokenIds& ids, bool color);

}  // namespace zoo
