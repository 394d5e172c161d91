#include "tokenizer/chat/chat_format.h"

#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/gguf_file.h"
#include "data/base/json.h"
#include "tokenizer/files/tokenizer_settings.h"
#include "tokenizer/jinja/lexer.h"
#include "tokenizer/jinja/renderer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char *kTemplateFile = "chat_template.jinja", *kTemplateFolder = "additional_chat_templates",
                     *kGgufTemplate = "tokenizer.chat_template",
                     *kGgufTemplateNames = "tokenizer.chat_templates";

constexpr const char* kPlainTemplate =
    R"({%- if tools %}{{ raise_exception('the plain template has no place for tools') }}{% endif %}
{%- for message in messages %}
{%- if message.role not in ['system', 'user', 'assistant'] or message.content is not string or message.tool_calls %}
{{- raise_exception('the plain template writes texts of the roles system, user and assistant') }}
{%- endif %}
{{- message.role | capitalize }}:
{% if message.role == 'assistant' %}
{% generation %}{{ message.content }}{{ eos_token }}{% endgeneration %}
{% else %}
{{ message.content }}
{% endif %}
{% endfor %}
{% if add_generation_prompt %}
Assistant:
{% endif %}
)";

std::string template_text(const nlohmann::json& value, const fs::path& file) {
  if (!value.is_string()) throw Error(file, ": chat_template is ", value.type_name(), ": expected a text");
  return value.get<std::string>();
}

constexpr std::size_t kMostKeys = 1000;  // of a message, which are compared pairwise

void require_objects(const ordered_json& list, const char* key) {
  if (!list.is_array()) throw Error(key, " is ", list.type_name(), ": expected a list of objects");
  for (const ordered_json& entry : list) {
    if (!entry.is_object()) throw Error(key, " holds ", entry.type_name(), ": expected objects");
    if (entry.size() > kMostKeys)
      throw Error(key, " holds an object of ", entry.size(), " keys: expected at most ", kMostKeys);
  }
}

// Reasoning under each of the names that templates use for it.
ordered_json with_reasoning(const ordered_json& message) {
  for (const char* key : {"reasoning_content", "thinking", "reasoning"}) {
    if (!message.contains(key)) continue;
    const ordered_json reasoning = message[key];
    ordered_json result{{"thinking", reasoning}};
    result.update(message);
    result["reasoning_content"] = reasoning;
    return result;
  }
  return message;
}

// Drops keys without a value, because templates write null as "None".
ordered_json cleaned_messages(const ordered_json& messages) {
  require_objects(messages, "messages");
  if (messages.empty()) throw Error("messages is empty: expected at least one");
  ordered_json cleaned = ordered_json::array();
  for (const ordered_json& message : messages) {
    ordered_json kept = ordered_json::object();
    for (const auto& [key, value] : message.items())
      if (!value.is_null()) kept[key] = value;
    cleaned.push_back(with_reasoning(kept));
  }
  return cleaned;
}

bool has_generation(const chat::Statements& body) {
  return std::ranges::any_of(body, [](const chat::Statement& statement) {
    return statement.kind == chat::Statement::Kind::generation || has_generation(statement.body) ||
           has_generation(statement.otherwise) || (statement.macro && has_generation(statement.macro->body));
  });
}

}  // namespace

struct ChatTemplate::Parsed {
  chat::Statements body;
  bool marks_answers, strict;
};

ChatTemplate::ChatTemplate(std::string_view source, std::string name, TemplateRules rules)
    : name_(std::move(name)) {
  require_utf8(source, name_);
  try {
    const bool strict = rules == TemplateRules::kHarness;
    chat::Statements body = chat::parse(source, /*trims=*/!strict);
    const bool marks_answers = has_generation(body);
    parsed_ = std::make_shared<const Parsed>(Parsed{std::move(body), marks_answers, strict});
  } catch (const chat::SyntaxFault& fault) {
    throw Error(name_, ", line ", fault.line, ": ", fault.what);
  }
}

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
  chat::Renderer renderer(heap, std::move(values), parsed_->strict);
  try {
    RenderedChat chat{.text = renderer.render(parsed_->body), .marks_answers = parsed_->marks_answers};
    chat.answers = renderer.generated();
    return chat;
  } catch (const chat::Fault& fault) {
    throw Error(name_, ", line ", renderer.line(), ": ", fault.what());
  }
}

ChatFormat ChatFormat::read(const fs::path& model, const fs::path& adapter) {
  ChatFormat format;
  if (!adapter.empty()) {
    format = read(model);
    ChatFormat own = read(adapter);
    if (!own.has_template()) return format;
    // Of two tokens of a name the last one counts.
    own.special_tokens_.insert(own.special_tokens_.begin(), format.special_tokens_.begin(),
                               format.special_tokens_.end());
    return own;
  }
  if (GgufFile::is_one(model)) {
    format.read_gguf(model);
    return format;
  }
  if (!fs::is_directory(model)) throw Error(model, " is not a directory or a GGUF file");
  format.read_settings(model);
  format.read_template_files(model);
  if (format.templates_.empty()) format.read_config_templates(model / "tokenizer_config.json");
  if (format.templates_.empty()) format.read_config_templates(model / "chat_template.json");
  return format;
}

GgufMetadata ChatFormat::gguf_metadata() const {
  GgufMetadata metadata;
  std::vector<std::string> names;
  for (const auto& [name, source] : templates_) {
    if (name == "default") {
      metadata.emplace_back(kGgufTemplate, source.text);
      continue;
    }
    std::string& plain = names.emplace_back(name);
    std::ranges::replace_if(
        plain, [](unsigned char c) { return c > 127 || std::isalnum(c) == 0; }, '_');
    metadata.emplace_back(std::string(kGgufTemplate) + "." + plain, source.text);
  }
  if (!names.empty()) metadata.emplace_back(kGgufTemplateNames, names);
  return metadata;
}

std::map<std::string, std::string> ChatFormat::files() const {
  std::map<std::string, std::string> files;
  for (const auto& [name, source] : templates_)
    files[name == "default" ? kTemplateFile : (fs::path(kTemplateFolder) / (name + ".jinja")).string()] =
        source.text;
  return files;
}

void ChatFormat::use_template(const fs::path& file) {
  templates_.clear();
  add("default", read_model_file(file), file);
}

void ChatFormat::use_plain_template() {
  if (std::ranges::count(special_tokens_, "eos_token", &std::pair<std::string, std::string>::first) == 0)
    throw Error("the tokenizer has no eos_token, which ends the turns of a chat");
  templates_.clear();
  add("default", kPlainTemplate, "the plain template");
}

void ChatFormat::add(std::string name, std::string text, const fs::path& origin) {
  std::string shown = origin.string() + (name == "default" ? "" : " (" + name + ")");
  templates_[std::move(name)] = {std::move(text), std::move(shown)};
}

void ChatFormat::read_settings(const fs::path& directory) {
  const TokenizerSettings settings = TokenizerSettings::read(directory);
  for (const RoleKey& role : kRoleKeys) {
    const auto token = settings.roles.find(role.role);
    if (token != settings.roles.end()) special_tokens_.emplace_back(role.key, token->second.content);
  }
  const fs::path file = directory / "tokenizer_config.json";
  if (!fs::exists(file)) return;
  const auto add_named = [&](const nlohmann::json& tokens, bool is_config) {
    for (const auto& entry : tokens.items()) {
      const std::string& name = entry.key();
      const nlohmann::json& token = entry.value();
      const bool is_role = std::ranges::count(kRoleKeys, name, &RoleKey::key) > 0;
      const nlohmann::json text = token.is_object() ? token.value("content", nlohmann::json()) : token;
      if ((!is_config || name.ends_with("_token")) && !is_role && text.is_string())
        special_tokens_.emplace_back(name, text.get<std::string>());
    }
  };
  const nlohmann::json config = read_json(file);
  add_named(config, /*is_config=*/true);
  if (const auto extra = config.find("extra_special_tokens"); extra != config.end() && extra->is_object())
    add_named(*extra, /*is_config=*/false);
}

void ChatFormat::read_gguf(const fs::path& path) {
  const GgufFile file(path);
  std::string text = file.text(kGgufTemplate);
  if (!text.empty()) add("default", std::move(text), path);
  const nlohmann::json& keys = file.metadata();
  for (const nlohmann::json& name : keys.value(kGgufTemplateNames, nlohmann::json::array())) {
    if (!name.is_string())
      throw Error(path, ": ", kGgufTemplateNames, " holds ", name.dump(), ": expected a text");
    const std::string key = std::string(kGgufTemplate) + "." + name.get<std::string>();
    add(name.get<std::string>(), file.text(key.c_str()), path);
  }
  const auto tokens = keys.find("tokenizer.ggml.tokens");
  for (const RoleKey& role : kRoleKeys) {
    const auto id = keys.find(role.gguf_key);
    if (id == keys.end() || tokens == keys.end()) continue;
    const bool is_id = id->is_number_unsigned() && tokens->is_array() &&
                       id->get<std::size_t>() < tokens->size() &&
                       (*tokens)[id->get<std::size_t>()].is_string();
    if (!is_id) throw Error(path, ": ", role.gguf_key, " is ", id->dump(), ": expected the id of a token");
    special_tokens_.emplace_back(role.key, (*tokens)[id->get<std::size_t>()].get<std::string>());
  }
}

void ChatFormat::read_config_templates(const fs::path& file) {
  if (!fs::exists(file)) return;
  const nlohmann::json config = read_json(file);
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return;
  if (!found->is_array()) return add("default", template_text(*found, file), file);
  for (const nlohmann::json& named : *found) {
    const bool is_named = named.is_object() && named.contains("name") && named["name"].is_string();
    if (!is_named || !named.contains("template"))
      throw Error(file, ": chat_template holds an entry without a name or a template");
    add(named["name"].get<std::string>(), template_text(named["template"], file), file);
  }
}

void ChatFormat::read_template_files(const fs::path& directory) {
  const fs::path file = directory / kTemplateFile, others = directory / kTemplateFolder;
  if (fs::exists(file)) add("default", read_model_file(file), file);
  if (!fs::is_directory(others)) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(others)) {
    if (entry.path().extension() == ".jinja")
      add(entry.path().stem().string(), read_model_file(entry.path()), entry.path());
  }
}

ChatTemplate ChatFormat::choose(bool with_tools) const {
  auto found = with_tools ? templates_.find("tool_use") : templates_.end();
  if (found == templates_.end()) found = templates_.find("default");
  if (found != templates_.end()) return ChatTemplate(found->second.text, found->second.origin);
  if (templates_.empty()) throw Error("the model has no chat template");
  throw Error(templates_.begin()->second.origin, ": no chat template is named default");
}

std::string ChatFormat::prompt(const ordered_json& request) const { return rendered(request).text; }

RenderedChat ChatFormat::rendered(const ordered_json& request) const {
  if (!request.is_object())
    throw Error("the request is ", request.type_name(), ": expected an object with messages");
  ordered_json variables = ordered_json::object();
  for (const auto& [name, token] : special_tokens_) variables[name] = token;
  for (const char* key : {"tools", "documents"}) {
    variables[key] = request.contains(key) ? request[key] : ordered_json(nullptr);
    if (!variables[key].is_null()) require_objects(variables[key], key);
  }
  variables["add_generation_prompt"] = false;
  variables.update(request);
  variables["messages"] =
      cleaned_messages(request.contains("messages") ? request["messages"] : ordered_json());
  return choose(!variables["tools"].is_null()).rendered(variables);
}

}  // namespace zoo
