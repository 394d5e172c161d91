#include <iostream>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "apps/command/standard_streams.h"
#include "apps/command/visible_text.h"
#include "apps/compute/compute.h"
#include "apps/verbs/generate/generate_flags.h"
#include "apps/verbs/generate/generated_text.h"
#include "apps/verbs/verbs.h"
#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "models/tasks/conversation.h"
#include "models/tasks/generate_session.h"
#include "tokenizer/chat/chat_format.h"
#include "tokenizer/chat/chat_tokens.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr const char* kHelp =
    "/reset         forget the conversation; the system message stays\n"
    "/system TEXT   set the system message; without TEXT there is none\n"
    "/exit          end, as Ctrl-D does\n"
    "A line that ends in \\ goes on with the next one; a space before / makes it a message.\n";

// A conversation in the terminal: the messages so far, answered by a model.
struct ChatSession {
  DecodingModel& model;
  const GenerateSession& session;
  Conversation conversation;
  GenerationOptions options;
  std::optional<std::int64_t> max_length;  // of a prompt and its answer, in tokens
  bool color;
  std::string unfinished = {};

  // Answers a line, or obeys it if it is a command such as /reset. A line that ends in a backslash goes on
  // with the next. False if it ends the session.
  bool take(const std::string& line) {
    if (line.ends_with('\\')) {
      unfinished += line.substr(0, line.size() - 1) + "\n";
      return true;
    }
    const std::string text = std::exchange(unfinished, {}) + line;
    if (text == "/exit") return false;
    if (text.starts_with('/')) {
      obey(text);
    } else if (!text.empty()) {
      answer(text);
    }
    return true;
  }

  void obey(const std::string& command) {
    constexpr std::string_view kSystem = "/system";
    if (command == "/help") {
      std::cerr << kHelp;
    } else if (command == "/reset") {
      conversation.reset();
    } else if (command == kSystem) {
      conversation.set_system("");
    } else if (command.starts_with(std::string(kSystem) + " ")) {
      conversation.set_system(command.substr(kSystem.size() + 1));
    } else {
      throw Error("'", command, "' is no command: /help lists them; a space before it makes it a message");
    }
  }

  void answer(const std::string& text) {
    const auto reply = [&](const Conversation::Prompt& prompt) {
      if (prompt.dropped > 0)
        std::cerr << "note: the oldest " << prompt.dropped << " messages no longer fit: dropped\n";
      ++options.sampling.seed;  // so that the same message gets another answer
      GenerationOptions own = options;
      if (max_length) own.max_new_tokens = *max_length - std::ssize(prompt.ids);
      return text_of_row(stream_reply(model, session, own, prompt.ids, color).ids[0], session);
    };
    conversation.ask(text, {.tokenizer = *session.tokenizer,
                            .context = conversation_context(model.config(), options.context, max_length),
                            .max_new_tokens = options.max_new_tokens,
                            .answer = reply});
  }
};

// A file's JSON, or that of standard input.
ordered_json read_given(const std::string& path) {
  return parse_ordered_json(path == "-" ? read_standard_input() : read_file(path));
}

ordered_json request_of(const ChatFlags& chat) {
  ordered_json request{{"messages", ordered_json::array()},
                       {"add_generation_prompt", chat.add_generation_prompt}};
  if (chat.messages) {
    ordered_json& messages = request["messages"] = read_given(*chat.messages);
    // A line of a training file has its messages in an object, perhaps with tools.
    const ordered_json line = messages.is_object() ? messages : ordered_json::object();
    if (line.contains("messages")) messages = line["messages"];
    if (!messages.is_array())
      throw Error("--messages: ", *chat.messages,
                  " is no JSON list, and no object with one under 'messages'");
    if (line.contains("tools")) request["tools"] = line["tools"];
  }
  if (!chat.tools.empty()) {
    request["tools"] = read_given(chat.tools.string());
    if (!request["tools"].is_array()) throw Error("--tools: ", chat.tools.string(), " is no JSON list");
  }
  return request;
}

ChatFormat format_of(const GenerateFlags& flags, const ChatFlags& chat) {
  ChatFormat format = ChatFormat::read(flags.model, flags.model.adapter);
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

}  // namespace

int run_chat(const Arguments& arguments) {
  GenerateFlags flags;
  ChatFlags chat;
  if (!parse_chat_flags(arguments, flags, chat)) return 0;
  const ChatFormat format = format_of(flags, chat);
  const ordered_json request = request_of(chat);
  if (chat.print_prompt) {
    print_prompt(flags, format, request, chat.assistant_mask);
    return 0;
  }
  const std::string prompt = chat.messages ? format.prompt(request) : "";
  apply_threads(flags.compute);
  GenerateSession session = open_session(flags);
  if (session.has_encoder())
    throw Error("--model: ", flags.model, " is an encoder-decoder; chat needs a decoder");
  if (!session.tokenizer) throw Error("--model: ", flags.model, " holds no tokenizer, which chat needs");
  add_end_tokens(session, format);
  std::vector<TokenIds> prompts;
  if (chat.messages) prompts = {session.tokenizer->encode(prompt)};
  GenerationOptions options = options_of(flags, session, prompts);
  const std::unique_ptr<DecodingModel> model = load_decoding_model(session.checkpoint, flags.compute);
  const std::unique_ptr<DecodingModel> draft = load_draft(flags);
  options.draft = draft.get();
  if (chat.messages) {
    if (flags.json) print_json(generate(*model, prompts, options), session);
    else stream_reply(*model, session, options, prompts[0], flags.color);
    return 0;
  }
  ChatSession chatting{*model,  session,          Conversation(format, request),
                       options, flags.max_length, flags.color};
  answer_lines([&](const std::string& line) { return chatting.take(line); });
  return 0;
}

}  // namespace zoo
