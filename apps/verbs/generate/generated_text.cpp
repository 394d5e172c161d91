#include "apps/verbs/generate/generated_text.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/arguments.h"
#include "apps/command/output.h"
#include "apps/command/standard_streams.h"
#include "apps/command/visible_text.h"
#include "apps/training/stop_signal.h"
#include "data/base/error.h"
#include "data/base/json.h"

namespace zoo {
namespace {

constexpr const char* kPlain = "\x1b[0m";

// From red for an improbable token to green for a probable one.
const char* color_of(double probability) {
  if (probability < 0.05) return "\x1b[31m";
  if (probability < 0.25) return "\x1b[33m";
  if (probability < 0.6) return "\x1b[36m";
  return "\x1b[32m";
}

double per_second(std::int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace

void RowPrinter::print_given(const TokenIds& prompt) {
  for (const TokenId id : prompt) std::cout << written_text(text_.push_given(id));
}

void RowPrinter::print(const NewToken& token) {
  const std::size_t held = text_.held();
  show(text_.push(token.id), held, color_of(std::exp(token.log_probability)));
}

void RowPrinter::finish() {
  const std::size_t held = text_.held();
  show(text_.finish(), held, kPlain);
  std::cout << "\n";
}

// Prints text that was certain after a token; `color` is that of the token's own bytes, some of which may be
// held back.
void RowPrinter::show(std::string_view text, std::size_t held_before, const char* color) {
  if (const std::size_t new_bytes = text.size() + text_.held() - held_before; new_bytes > 0)
    colors_.emplace_back(new_bytes, color);
  while (!text.empty()) {
    auto& [size, own] = colors_.front();
    const std::size_t count = std::min(size, text.size());
    if (color_) std::cout << own;
    std::cout << written_text(text.substr(0, count));
    if (color_) std::cout << kPlain;
    text.remove_prefix(count);
    size -= count;
    if (size == 0) colors_.erase(colors_.begin());
  }
}

void print_json(const GenerationResult& result, const GenerateSession& session) {
  nlohmann::json json{{"ids", result.ids}, {"tokens_per_second", result.tokens_per_second()}};
  if (session.tokenizer) {
    json["text"] = nlohmann::json::array();
    for (std::size_t row = 0; row < result.ids.size(); ++row)
      json["text"].push_back(text_of_row(result.ids[row], session));
  }
  if (!result.log_probabilities.empty()) json["logprobs"] = result.log_probabilities;
  if (!result.scores.empty()) json["scores"] = result.scores;
  if (result.drafted > 0)
    json["acceptance_rate"] = static_cast<double>(result.accepted) / static_cast<double>(result.drafted);
  std::cout << json_text(json) << "\n";
}

void print_timing(const GenerationResult& result) {
  const auto count = result.token_count();
  std::cout.flush();
  std::cerr << format_text(
      "%lld tokens in %.2f s, %.0f tok/s (prompt of %lld: %.0f tok/s, then %.0f tok/s)\n",
      static_cast<long long>(count), result.seconds_prefill + result.seconds_decode,
      result.tokens_per_second(), static_cast<long long>(result.prompt_count),
      per_second(result.prompt_count, result.seconds_prefill),
      per_second(count - static_cast<std::int64_t>(result.ids.size()), result.seconds_decode));
  if (result.drafted > 0)
    std::cerr << "note: " << result.accepted << " of " << result.drafted << " drafted tokens were kept\n";
}

void answer_lines(const std::function<bool(const std::string&)>& answer) {
  for (bool first = true;; first = false) {
    const std::optional<std::string> line = asked_line("> ", first);
    if (!line) return;
    try {
      if (!answer(*line)) return;
    } catch (const Error& error) {
      std::cout.flush();
      std::cerr << "error: " << flag_message(error) << "\n";
    }
    std::cout.flush();
  }
}

GenerationResult stream_reply(DecodingModel& model, const GenerateSession& session, GenerationOptions options,
                              const TokenIds& ids, bool color) {
  const StopSignal stop;
  options.interrupted = [] { return StopSignal::received() != 0; };
  options.keep_cache = true;  // a conversation begins alike in each turn
  RowPrinter printer(session, color);
  GenerationResult result = generate(model, {ids}, options, [&](const NewToken& token) {
    printer.print(token);
    std::cout.flush();
    return StopSignal::received() == 0;
  });
  printer.finish();
  print_timing(result);
  return result;
}

}  // namespace zoo
