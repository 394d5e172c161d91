#include "tokenizer/chat/chat_tokens.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "data/base/error.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kMark = "qz7jx3vk9w";  // nothing that a template trims or splits

// The text of a message that a mark can stand in, of calls alone the last one's name; null: none.
std::string* text_in(ordered_json& message) {
  const auto text_of = [](ordered_json& holder, const char* key) -> std::string* {
    const auto found = holder.is_object() ? holder.find(key) : holder.end();
    auto* text = found != holder.end() ? found->get_ptr<std::string*>() : nullptr;
    return text != nullptr && text->find_first_not_of(" \t\r\n") != text->npos ? text : nullptr;
  };
  const auto last_of = [&](const char* key) -> ordered_json* {
    const auto found = message.find(key);
    return found != message.end() && found->is_array() && !found->empty() ? &found->back() : nullptr;
  };
  if (std::string* text = text_of(message, "content")) return text;
  if (ordered_json* part = last_of("content")) return text_of(*part, "text");
  ordered_json* call = last_of("tool_calls");
  if (call == nullptr) return nullptr;
  return text_of(call->contains("function") ? (*call)["function"] : *call, "name");
}

// Behind the text or in the middle of it: a template may look at its beginning and its end, and trim it.
std::array<std::size_t, 2> places_in(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
  return {last + 1, character_begin(text, (first + last) / 2 + 1)};
}

class Turns {
 public:
  Turns(const ChatFormat& format, const ordered_json& request, const std::string& whole)
      : format_(format), request_(request), whole_(whole) {}

  // The bytes that message i, which is the assistant's, has in the whole conversation: from what asks for it
  // to what ends it, in the part that goes so far. An eos_token that ends the part alone ends no turn.
  ByteRange answer(std::size_t i, const std::string& eos) const {
    if (i == 0) throw Error("the assistant's message is the first: there is no prompt");
    std::optional<std::size_t> begin = end_in_whole(i, /*asks=*/true, ""),
                               end = end_in_whole(i + 1, /*asks=*/false, eos);
    if (!begin || !end || *begin > *end)
      throw Error("message ", i + 1,
                  ": the chat template renders it otherwise in the whole conversation, so "
                  "that the assistant's part cannot be told; put the part between {% generation %} and "
                  "{% endgeneration %} in the template");
    if (begin == end)
      throw Error("the chat template writes nothing for message ", i + 1, ", which is the assistant's");
    return {static_cast<std::uint32_t>(*begin), static_cast<std::uint32_t>(*end)};
  }

 private:
  std::string prompt(ordered_json request, std::size_t count, bool asks) const {
    ordered_json& messages = request["messages"];
    messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(count), messages.end());
    request["add_generation_prompt"] = asks;
    return format_.prompt(request);
  }

  // Where the text of the first `count` messages ends in the whole conversation. If that does not begin with
  // it, what they have behind a mark in the last of them tells it.
  std::optional<std::size_t> end_in_whole(std::size_t count, bool asks, const std::string& eos) const {
    if (const std::string part = prompt(request_, count, asks); whole_.starts_with(part)) return part.size();
    ordered_json marked = request_;
    std::string* const text = text_in(marked["messages"][count - 1]);
    if (text == nullptr) return std::nullopt;
    const std::string original = *text;
    for (const std::size_t place : places_in(original)) {
      *text = original;
      text->insert(place, kMark);
      std::string all = format_.prompt(marked), part = prompt(marked, count, asks);
      const std::size_t at = all.find(kMark), at_part = part.find(kMark);
      if (at == all.npos || at_part == part.npos || part.find(kMark, at_part + 1) != part.npos) continue;
      if (all.erase(at, kMark.size()) != whole_) continue;
      const std::string_view rest = std::string_view(whole_).substr(at);
      std::string_view ending = std::string_view(part).substr(at_part + kMark.size());
      if (!rest.starts_with(ending) && ending.ends_with(eos)) ending.remove_suffix(eos.size());
      if (rest.starts_with(ending)) return at + ending.size();
    }
    return std::nullopt;
  }

  const ChatFormat& format_;
  const ordered_json& request_;
  const std::string& whole_;
};

}  // namespace

ChatTokens encode_chat(const ChatFormat& format, const Tokenizer& tokenizer, const ordered_json& request,
                       std::size_t prompt) {
  RenderedChat chat = format.rendered(request);
  const ordered_json& messages = request.at("messages");
  if (!chat.marks_answers) {
    const std::string eos =
        tokenizer.eos_id() ? tokenizer.decode_with_special_tokens(TokenIds{*tokenizer.eos_id()}) : "";
    const Turns turns(format, request, chat.text);
    for (std::size_t i = prompt; i < messages.size(); ++i)
      if (messages[i].value("role", "") == "assistant") chat.answers.push_back(turns.answer(i, eos));
  } else if (prompt > 0) {
    ordered_json before = request;
    before["messages"].erase(before["messages"].begin() + static_cast<std::ptrdiff_t>(prompt),
                             before["messages"].end());
    const std::size_t count = std::min(format.rendered(before).answers.size(), chat.answers.size());
    chat.answers.erase(chat.answers.begin(), chat.answers.begin() + static_cast<std::ptrdiff_t>(count));
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
