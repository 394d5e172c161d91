#include "tokenizer/chat/chat_template.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "tokenizer/jinja/lexer.h"
#include "tokenizer/jinja/parser.h"
#include "tokenizer/jinja/renderer.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

namespace {

bool has_generation(const chat::Statements& body) {
  return std::ranges::any_of(body, [](const chat::Statement& statement) {
    return statement.kind == chat::Statement::Kind::generation || has_generation(statement.body) ||
           has_generation(statement.otherwise) || (statement.macro && has_generation(statement.macro->body));
  });
}

}  // namespace

struct ChatTemplate::Parsed {
  chat::Statements body;
  bool marks_answers;
};

ChatTemplate::ChatTemplate(std::string_view source, std::string name) : name_(std::move(name)) {
  require_utf8(source, name_);
  try {
    chat::Statements body = chat::parse(source);
    const bool marks_answers = has_generation(body);
    parsed_ = std::make_unique<const Parsed>(Parsed{std::move(body), marks_answers});
  } catch (const chat::SyntaxFault& fault) {
    throw Error(name_, ", line ", fault.line, ": ", fault.what);
  }
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const nlohmann::ordered_json& variables) const {
  return rendered(variables).text;
}

RenderedChat ChatTemplate::rendered(const nlohmann::ordered_json& variables) const {
  chat::Heap heap;
  std::vector<std::pair<std::string, chat::Value>> values;
  try {
    for (const auto& [name, value] : variables.items()) values.emplace_back(name, heap.from_json(value));
  } catch (const chat::Fault& fault) {
    throw Error("the chat's messages: ", fault.what());
  }
  chat::Renderer renderer(heap, std::move(values));
  try {
    RenderedChat chat{.text = renderer.render(parsed_->body), .marks_answers = parsed_->marks_answers};
    chat.answers = renderer.generated();
    return chat;
  } catch (const chat::Fault& fault) {
    throw Error(name_, ", line ", renderer.line(), ": ", fault.what());
  }
}

}  // namespace zoo
