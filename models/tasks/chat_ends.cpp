#include "models/tasks/chat_ends.h"

#include <algorithm>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>

#include "data/base/error.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

// The special token that the template writes after an answer; nothing if it writes none.
std::optional<TokenId> end_of_turn(const ChatFormat& format, const Tokenizer& tokenizer) {
  constexpr std::string_view kAnswer = "an answer";
  const ordered_json messages{{{"role", "user"}, {"content", "a question"}},
                              {{"role", "assistant"}, {"content", kAnswer}}};
  std::string prompt;
  try {
    prompt = format.prompt({{"messages", messages}});
  } catch (const Error&) {  // such as a template that asks for tools
    return std::nullopt;
  }
  const std::size_t answer = prompt.rfind(kAnswer);
  if (answer == std::string::npos) return std::nullopt;
  const std::size_t after = prompt.find_first_not_of(" \n", answer + kAnswer.size());
  if (after == std::string::npos) return std::nullopt;
  const TokenIds ids = tokenizer.encode(std::string_view(prompt).substr(after));
  const bool is_special = !ids.empty() && tokenizer.decode(std::span(ids).first(1)).empty();
  return is_special ? std::optional(ids[0]) : std::nullopt;
}

}  // namespace

void add_end_tokens(GenerateSession& session, const ChatFormat& format) {
  for (const std::optional<TokenId> id :
       {session.tokenizer->eos_id(), end_of_turn(format, *session.tokenizer)}) {
    TokenIds& ends = session.defaults.eos_token_ids;
    if (id && std::find(ends.begin(), ends.end(), *id) == ends.end()) ends.push_back(*id);
  }
}

}  // namespace zoo
