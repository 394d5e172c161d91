#include "tokenizer/chat/chat_tokens.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "data/base/error.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

// The bytes that each message of the assistant adds, by rendering the conversation turn by turn.
std::vector<ByteRange> answers_by_turns(const ChatFormat& format, const ordered_json& request,
                                        const std::string& whole) {
  std::vector<ByteRange> answers;
  ordered_json part = request;
  part["messages"] = ordered_json::array();
  const ordered_json& messages = request.at("messages");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].value("role", "") == "assistant") {
      if (part["messages"].empty()) throw Error("the assistant's message is the first: there is no prompt");
      part["add_generation_prompt"] = true;
      const std::string before = format.prompt(part);
      part["messages"].push_back(messages[i]);
      part["add_generation_prompt"] = false;
      const std::string after = format.prompt(part);
      if (after.size() <= before.size())
        throw Error("the chat template writes nothing for message ", i + 1, ", which is the assistant's");
      if (!after.starts_with(before) || !whole.starts_with(after))
        throw Error("message ", i + 1,
                    ": the chat template renders it otherwise in the whole conversation, so "
                    "that the assistant's part cannot be told; put the part between {% generation %} and "
                    "{% endgeneration %} in the template");
      answers.push_back(
          {static_cast<std::uint32_t>(before.size()), static_cast<std::uint32_t>(after.size())});
    } else {
      part["messages"].push_back(messages[i]);
    }
  }
  return answers;
}

}  // namespace

ChatTokens encode_chat(const ChatFormat& format, const Tokenizer& tokenizer, const ordered_json& request,
                       std::size_t prompt) {
  RenderedChat chat = format.rendered(request);
  if (!chat.marks_answers) chat.answers = answers_by_turns(format, request, chat.text);
  if (prompt > 0) {
    ordered_json before = request;
    ordered_json& messages = before["messages"];
    messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(prompt), messages.end());
    const auto of_assistant = [](const ordered_json& message) { return message["role"] == "assistant"; };
    const std::size_t count = chat.marks_answers
                                  ? format.rendered(before).answers.size()
                                  : static_cast<std::size_t>(std::ranges::count_if(messages, of_assistant));
    chat.answers.erase(chat.answers.begin(), chat.answers.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                        count, chat.answers.size())));
  }
  const Encoding encoding = tokenizer.encode(chat.text, EncodeOptions{.add_special_tokens = false});
  if (encoding.offsets.size() != encoding.size())
    throw Error("this tokenizer does not say where its tokens stand, which the assistant's part needs");
  ChatTokens tokens{.ids = encoding.ids, .answers = std::vector<bool>(encoding.size())};
  std::size_t next = 0;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    const ByteRange& token = encoding.offsets[i];
    while (next < chat.answers.size() && chat.answers[next].end <= token.begin) ++next;
    tokens.answers[i] = next < chat.answers.size() && token.end > chat.answers[next].begin;
  }
  return tokens;
}

}  // namespace zoo
