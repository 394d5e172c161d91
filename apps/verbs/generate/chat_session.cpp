#include "apps/verbs/generate/chat_session.h"

#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/verbs/generate/generate_interactive.h"
#include "apps/verbs/generate/generated_text.h"
#include "data/base/error.h"
#include "models/generation/decoding_batch.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr const char* kHelp =
    "/reset         forget the conversation; the system message stays\n"
    "/system TEXT   set the system message; without TEXT there is none\n"
    "/exit          end, as Ctrl-D does\n"
    "A line that ends in \\ goes on with the next one; a space before / makes it a message.\n";

bool has_system(const ordered_json& messages) {
  return !messages.empty() && messages[0]["role"] == "system";
}

}  // namespace

ChatSession::ChatSession(DecodingModel& model, const GenerateSession& session, const ChatFormat& format,
                         ordered_json& request, GenerationOptions options, bool color)
    : model_(model),
      session_(session),
      format_(format),
      request_(request),
      options_(std::move(options)),
      color_(color) {}

bool ChatSession::take(const std::string& line) {
  if (line.ends_with('\\')) {
    unfinished_ += line.substr(0, line.size() - 1) + "\n";
    return true;
  }
  const std::string text = std::exchange(unfinished_, {}) + line;
  if (text == "/exit") return false;
  if (text.starts_with('/')) {
    obey(text);
  } else if (!text.empty()) {
    answer(text);
  }
  return true;
}

void ChatSession::obey(const std::string& command) {
  constexpr std::string_view kSystem = "/system";
  ordered_json& messages = request_["messages"];
  if (command == "/help") {
    std::cerr << kHelp;
  } else if (command == "/reset") {
    messages.erase(messages.begin() + (has_system(messages) ? 1 : 0), messages.end());
  } else if (command == kSystem) {
    set_system("");
  } else if (command.starts_with(std::string(kSystem) + " ")) {
    set_system(command.substr(kSystem.size() + 1));
  } else {
    throw Error("'", command, "' is no command: /help lists them; a space before it makes it a message");
  }
}

void ChatSession::set_system(const std::string& text) {
  require_utf8(text, "the system message");
  ordered_json& messages = request_["messages"];
  if (has_system(messages)) messages.erase(0);
  if (!text.empty()) messages.insert(messages.begin(), ordered_json{{"role", "system"}, {"content", text}});
}

void ChatSession::answer(const std::string& text) {
  require_utf8(text, "the message");
  const ordered_json before = request_["messages"];
  request_["messages"].push_back({{"role", "user"}, {"content", text}});
  try {
    const TokenIds ids = fitting_ids();
    ++options_.sampling.seed;  // so that the same message gets another answer
    const GenerationResult result = stream_reply(model_, session_, options_, ids, color_);
    request_["messages"].push_back(
        {{"role", "assistant"}, {"content", text_of_row(result.ids[0], session_)}});
  } catch (const Error&) {
    request_["messages"] = before;
    throw;
  }
}

TokenIds ChatSession::fitting_ids() {
  ordered_json& messages = request_["messages"];
  const std::int64_t limit = context_limit(model_.config(), options_.context);
  const std::int64_t room = std::min(options_.max_new_tokens, std::max<std::int64_t>(1, limit / 4));
  for (std::size_t dropped = 0;;) {
    TokenIds ids = session_.tokenizer->encode(format_.prompt(request_));
    const auto size = static_cast<std::int64_t>(ids.size());
    if (size <= limit - room) {
      if (dropped > 0) std::cerr << "note: the oldest " << dropped << " messages no longer fit: dropped\n";
      return ids;
    }
    // A turn begins with a message of the user; the last one is the question.
    const std::size_t first = has_system(messages) ? 1 : 0;
    std::size_t next = first + 1;
    while (next < messages.size() && messages[next]["role"] != "user") ++next;
    if (next >= messages.size())
      throw Error("the message makes a prompt of ", size, " tokens; the model reads ", limit,
                  ", and the answer takes ", room);
    dropped += next - first;
    messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(first),
                   messages.begin() + static_cast<std::ptrdiff_t>(next));
  }
}

}  // namespace zoo
