#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/tasks/generate_session.h"
#include "tokenizer/stream_decoder.h"

namespace zoo {

/// Streams one row to std::cout: whole characters only, up to the first stop string, optionally with each
/// token coloured by its probability. Prints the text as written_text().
class RowPrinter {
 public:
  RowPrinter(const GenerateSession& session, bool color)
      : text_ids_(session), stop_(session.stop), decoder_(*session.tokenizer), color_(color) {}

  /// Prints the prompt, in which stop strings have no effect.
  void print_given(const TokenIds& prompt);
  void print(const NewToken& token);
  /// Prints the held-back text and the end of the line.
  void finish();

 private:
  void show(std::string text, const char* color);
  void release(std::size_t bytes);

  TextIds text_ids_;
  const StopStrings& stop_;
  StreamDecoder decoder_;
  bool color_, stopped_ = false;
  std::string pending_;                                      // may be the beginning of a stop string
  std::vector<std::pair<std::size_t, const char*>> colors_;  // number of bytes of pending_ and their colour
};

/// One generated row.
struct GeneratedRow {
  const GenerationResult& result;
  std::size_t row;

  NewToken token(std::size_t i) const {
    const bool known = !result.log_probabilities.empty();
    return {row, result.ids[row][i], known ? result.log_probabilities[row][i] : 0};
  }
  std::size_t size() const { return result.ids[row].size(); }
};

/// Prints the JSON object of --json.
void print_json(const GenerationResult& result, const GenerateSession& session);

/// Prints one line on standard error: tokens, seconds, and the speeds of prefill and decoding.
void print_timing(const GenerationResult& result);

}  // namespace zoo
