#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

#include "apps/training/batches/encode_examples.h"
#include "data/examples/conversation_file.h"
#include "tokenizer/chat/chat_tokens.h"

namespace zoo {
namespace {

// True if the template writes the conversation's tools and calls, where it has any.
bool writes_tools(const ChatFormat& format, const nlohmann::ordered_json& request) {
  nlohmann::ordered_json without = request;
  without["tools"] = nullptr;
  const bool has_tools = !request.at("tools").is_null();
  bool has_calls = false;
  for (nlohmann::ordered_json& message : without["messages"])
    has_calls = message.erase("tool_calls") > 0 || has_calls;
  if (!has_tools && !has_calls) return true;
  try {
    return format.prompt(without) != format.prompt(request);
  } catch (const Error&) {  // such as a message that needs its calls
    return true;
  }
}

// True if an answer ends in a special token, perhaps before white space.
bool ends_answer(const ChatTokens& tokens, const Tokenizer& tokenizer) {
  std::size_t last = tokens.ids.size();
  while (last > 0 && !tokens.answers[last - 1]) --last;
  for (std::size_t i = last; i > 0 && tokens.answers[i - 1]; --i) {
    const std::string text = tokenizer.decode(std::span(tokens.ids).subspan(i - 1, 1));
    if (text.empty()) return true;  // decoding leaves special tokens out
    if (text.find_first_not_of(" \n") != std::string::npos) return false;
  }
  return false;
}

bool learns(const Example& example) {
  return std::ranges::any_of(example.labels, [](std::int64_t label) { return label >= 0; });
}

// The messages after the first `prompt`, cut to the limit: learns() is false where it leaves nothing.
Example encode_request(const nlohmann::ordered_json& request, std::size_t prompt, const ChatFormat& format,
                       const Tokenizer& tokenizer, EncodeLimits& limits) {
  const ChatTokens tokens = encode_chat(format, tokenizer, request, prompt);
  limits.without_tools += writes_tools(format, request) ? 0 : 1;
  limits.endless += ends_answer(tokens, tokenizer) ? 0 : 1;
  const std::size_t size = std::min(tokens.ids.size(), limits.max_length);
  Example example{.input_ids = {tokens.ids.begin(), tokens.ids.begin() + static_cast<std::ptrdiff_t>(size)}};
  // Nothing predicts the first token.
  for (std::size_t i = 0; i < size; ++i)
    example.labels.push_back(tokens.answers[i] && i > 0 ? tokens.ids[i] : -100);
  limits.cut += learns(example) && size < tokens.ids.size() ? 1 : 0;
  return example;
}

// Of each record the examples that `encode` adds; a record for which it throws is counted and left out.
// `needed` completes "no …" in the Error where nothing is left.
template <class V, class Encode>
std::vector<Example> encode_usable(const std::vector<V>& records, const std::string& name,
                                   const std::string& needed, EncodeLimits& limits, Encode encode) {
  const std::int64_t before = limits.unusable;
  std::vector<Example> examples;
  for (const V& record : records) {
    try {
      at_line(name, record.line, [&] { encode(record, examples); });
    } catch (const Error& error) {
      ++limits.unusable;
      limits.fault = error.what();
    }
  }
  if (examples.empty() && limits.unusable > before) throw Error(limits.fault);
  if (examples.empty()) throw Error(name, ": no ", needed, " within ", limits.max_length, " tokens");
  return examples;
}

}  // namespace

std::vector<Example> encode_conversations(const std::vector<ConversationRecord>& conversations,
                                          const ChatFormat& format, const Tokenizer& tokenizer,
                                          const std::string& name, EncodeLimits& limits) {
  const auto encode = [&](const ConversationRecord& each, std::vector<Example>& examples) {
    Example example = encode_request(*each.request, each.prompt, format, tokenizer, limits);
    if (learns(example)) examples.push_back(std::move(example));
    else ++limits.left_out;
  };
  return encode_usable(conversations, name, "conversation has an answer", limits, encode);
}

std::vector<Example> encode_preferences(const std::vector<Preference>& preferences, const ChatFormat& format,
                                        const Tokenizer& tokenizer, const std::string& name,
                                        EncodeLimits& limits) {
  const auto encode = [&](const Preference& preference, std::vector<Example>& examples) {
    std::vector<Example> answers;
    for (const auto& request : {preference.chosen, preference.rejected}) {
      if (!request) continue;
      answers.push_back(encode_request(*request, preference.prompt, format, tokenizer, limits));
      answers.back().is_rejected = request == preference.rejected;
    }
    if (!std::ranges::all_of(answers, learns)) ++limits.left_out;
    else if (answers.size() == 2 && answers[0].input_ids == answers[1].input_ids) ++limits.equal;
    else std::ranges::move(answers, std::back_inserter(examples));
  };
  return encode_usable(preferences, name, "prompt has answers that differ", limits, encode);
}

}  // namespace zoo
