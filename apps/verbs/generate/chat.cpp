#include <iostream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "apps/command/lines.h"
#include "apps/command/visible_text.h"
#include "apps/compute/threads.h"
#include "apps/verbs/generate/chat_session.h"
#include "apps/verbs/generate/generate_interactive.h"
#include "apps/verbs/generate/generated_text.h"
#include "apps/verbs/generate/session_flags.h"
#include "apps/verbs/verbs.h"
#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json_text.h"
#include "models/tasks/chat_ends.h"
#include "tokenizer/chat/chat_tokens.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

ordered_json read_list(const std::string& flag, const std::string& path) {
  const std::string text = path == "-" ? read_standard_input() : read_file(path);
  ordered_json list = parse_ordered_json(text);
  if (!list.is_array()) throw Error("--", flag, ": ", path, " is no JSON list");
  return list;
}

// A list of messages, or a line of a training file: an object that holds one, perhaps with tools.
ordered_json read_messages(const std::string& path) {
  ordered_json read = parse_ordered_json(path == "-" ? read_standard_input() : read_file(path));
  if (read.is_object() && read.contains("messages") && read["messages"].is_array()) return read;
  if (!read.is_array())
    throw Error("--messages: ", path, " is no JSON list, and no object with one under 'messages'");
  return read;
}

ordered_json request_of(const ChatFlags& chat) {
  ordered_json request{{"messages", ordered_json::array()},
                       {"add_generation_prompt", chat.add_generation_prompt}};
  if (chat.messages) {
    const ordered_json read = read_messages(*chat.messages);
    request["messages"] = read.is_object() ? read["messages"] : read;
    if (read.is_object() && read.contains("tools")) request["tools"] = read["tools"];
  }
  if (!chat.tools.empty()) request["tools"] = read_list("tools", chat.tools.string());
  return request;
}

ChatFormat format_of(const GenerateFlags& flags, const ChatFlags& chat) {
  ChatFormat format = ChatFormat::read(flags.model);
  if (!chat.chat_template.empty()) format.use_template(chat.chat_template);
  if (!format.has_template())
    throw Error("--model: ", flags.model, " has no chat template; --chat_template FILE gives one");
  format.choose(!chat.tools.empty());  // refuses what the zoo cannot run before the weights are read
  return format;
}

void print_prompt(const GenerateFlags& flags, const ChatFormat& format, const ordered_json& request,
                  bool with_mask) {
  const std::string prompt = format.prompt(request);
  if (!flags.json) {
    std::cout << written_text(prompt);
    return;
  }
  const auto tokenizer = load_tokenizer(flags.model);
  nlohmann::json printed{{"prompt", prompt}, {"ids", tokenizer->encode(prompt)}};
  if (with_mask) {
    const std::vector<bool> answers = encode_chat(format, *tokenizer, request).answers;
    printed["assistant_mask"] = std::vector<int>(answers.begin(), answers.end());
  }
  std::cout << json_text(printed) << "\n";
}

GenerateSession open_chat(const GenerateFlags& flags, const ChatFormat& format) {
  GenerateSession session = open_session(flags);
  if (session.has_encoder())
    throw Error("--model: ", flags.model, " is an encoder-decoder; chat needs a decoder");
  if (!session.tokenizer) throw Error("--model: ", flags.model, " holds no tokenizer, which chat needs");
  add_end_tokens(session, format);
  return session;
}

void answer_once(DecodingModel& model, const GenerateFlags& flags, const GenerateSession& session,
                 const GenerationOptions& options, const TokenIds& ids) {
  if (flags.json) {
    print_json(generate(model, {ids}, options), session);
  } else {
    stream_reply(model, session, options, ids, flags.color);
  }
}

}  // namespace

int run_chat(const Arguments& arguments) {
  GenerateFlags flags;
  ChatFlags chat;
  if (!parse_chat_flags(arguments, flags, chat)) return 0;
  const ChatFormat format = format_of(flags, chat);
  ordered_json request = request_of(chat);
  if (chat.print_prompt) {
    print_prompt(flags, format, request, chat.assistant_mask);
    return 0;
  }
  const std::string prompt = chat.messages ? format.prompt(request) : "";
  apply_threads(flags.compute);
  const GenerateSession session = open_chat(flags, format);
  std::vector<TokenIds> prompts;
  if (chat.messages) prompts = {session.tokenizer->encode(prompt)};
  GenerationOptions options = options_of(flags, session, prompts);
  const std::unique_ptr<DecodingModel> model = load_decoding_model(session.checkpoint, flags.compute);
  const std::unique_ptr<DecodingModel> draft = load_draft(flags);
  options.draft = draft.get();
  if (chat.messages) {
    answer_once(*model, flags, session, options, prompts[0]);
    return 0;
  }
  ChatSession conversation(*model, session, format, request, options, flags.color);
  answer_lines([&](const std::string& line) { return conversation.take(line); });
  return 0;
}

}  // namespace zoo
