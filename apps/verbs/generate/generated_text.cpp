#include "apps/verbs/generate/generated_text.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/visible_text.h"
#include "data/base/json_text.h"

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
  for (const TokenId id : prompt) {
    if (text_ids_.contains(id)) std::cout << written_text(decoder_.push(id));
  }
}

void RowPrinter::print(const NewToken& token) {
  if (stopped_ || !text_ids_.contains(token.id)) return;
  show(decoder_.push(token.id), color_of(std::exp(token.log_probability)));
}

void RowPrinter::show(std::string text, const char* color) {
  if (text.empty()) return;
  colors_.emplace_back(text.size(), color);
  pending_ += text;
  if (const auto stop = stop_.find(pending_)) {
    release(*stop);
    stopped_ = true;
  } else {
    release(pending_.size() - stop_.undecided(pending_));
  }
}

void RowPrinter::release(std::size_t bytes) {
  std::size_t begin = 0;
  while (begin < bytes) {
    auto& [size, color] = colors_.front();
    const std::size_t count = std::min(size, bytes - begin);
    if (color_) std::cout << color;
    std::cout << written_text(std::string_view(pending_).substr(begin, count));
    if (color_) std::cout << kPlain;
    begin += count;
    size -= count;
    if (size == 0) colors_.erase(colors_.begin());
  }
  pending_.erase(0, bytes);
}

void RowPrinter::finish() {
  if (!stopped_) {
    show(decoder_.finish(), kPlain);
    if (!stopped_) release(pending_.size());
  }
  std::cout << "\n";
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
  if (result.drafted > 0) {
    json["acceptance_rate"] = static_cast<double>(result.accepted) / static_cast<double>(result.drafted);
  }
  std::cout << json_text(json) << "\n";
}

void print_timing(const GenerationResult& result) {
  std::array<char, 256> line{};
  const auto count = result.token_count();
  std::snprintf(line.data(), line.size(),
                "%lld tokens in %.2f s, %.0f tok/s (prompt of %lld: %.0f tok/s, then %.0f tok/s)\n",
                static_cast<long long>(count), result.seconds_prefill + result.seconds_decode,
                result.tokens_per_second(), static_cast<long long>(result.prompt_count),
                per_second(result.prompt_count, result.seconds_prefill),
                per_second(count - static_cast<std::int64_t>(result.ids.size()), result.seconds_decode));
  std::cout.flush();
  std::cerr << line.data();
  if (result.drafted > 0)
    std::cerr << "note: " << result.accepted << " of " << result.drafted << " drafted tokens were kept\n";
}

}  // namespace zoo
