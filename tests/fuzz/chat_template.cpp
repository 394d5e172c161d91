#include <nlohmann/json.hpp>

#include "tests/fuzz/fuzz.h"
#include "tokenizer/chat/chat_format.h"

void zoo::fuzz::read(std::string_view input) {
  static const nlohmann::ordered_json kVariables = {
      {"messages",
       {{{"role", "system"}, {"content", "Be brief."}},
        {{"role", "user"}, {"content", "2 + 2?"}},
        {{"role", "assistant"},
         {"content", nullptr},
         {"tool_calls", {{{"name", "add"}, {"arguments", {{"a", 2}}}}}}},
        {{"role", "tool"}, {"content", "4"}}}},
      {"tools",
       {{{"type", "function"}, {"function", {{"name", "add"}, {"parameters", {{"type", "object"}}}}}}}},
      {"documents", nullptr},
      {"add_generation_prompt", true},
      {"bos_token", "<s>"},
      {"eos_token", "</s>"}};
  ChatTemplate(input, "chat_template").render(kVariables);
}
