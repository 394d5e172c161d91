#include "tokenizer/chat/chat_template.h"

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "tokenizer/jinja/lexer.h"
#include "tokenizer/jinja/parser.h"
#include "tokenizer/jinja/renderer.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

struct ChatTemplate::Parsed {
  chat::Statements body;
};

ChatTemplate::ChatTemplate(std::string_view source, std::string name) : name_(std::move(name)) {
  require_utf8(source, name_);
  try {
    parsed_ = std::make_unique<const Parsed>(Parsed{chat::parse(source)});
  } catch (const chat::SyntaxFault& fault) {
    throw Error(name_, ", line ", fault.line, ": ", fault.what);
  }
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const nlohmann::ordered_json& variables) const {
  chat::Heap heap;
  std::vector<std::pair<std::string, chat::Value>> values;
  try {
    for (const auto& [name, value] : variables.items()) values.emplace_back(name, heap.from_json(value));
  } catch (const chat::Fault& fault) {
    throw Error("the chat's messages: ", fault.what());
  }
  chat::Renderer renderer(heap, std::move(values));
  try {
    return renderer.render(parsed_->body);
  } catch (const chat::Fault& fault) {
    throw Error(name_, ", line ", renderer.line(), ": ", fault.what());
  }
}

}  // namespace zoo
