#include <algorithm>

#include <nlohmann/json.hpp>

#include "apps/serve/endpoints/chat_dialect.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "models/tasks/text_constraint.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostTools = 128, kLongestName = 64;

bool is_name(const ordered_json& name) {
  if (!name.is_string()) return false;
  const auto& text = name.get_ref<const std::string&>();
  return !text.empty() && text.size() <= kLongestName && std::ranges::all_of(text, [](char c) {
    return is_ascii_letter(c) || is_ascii_digit(c) || c == '_' || c == '-' || c == '.';
  });
}

// The parameters of a function as a schema of an object: without them, it has none.
ordered_json schema_of(const ordered_json& function, const std::string& place) {
  ordered_json schema = member(function, "parameters");
  if (schema.is_null()) schema = {{"properties", ordered_json::object()}};
  if (!schema.is_object() || (schema.contains("type") && schema["type"] != "object"))
    RequestFields::refuse(place + ".parameters", "must be the JSON schema of an object");
  schema["type"] = "object";
  return schema;
}

std::vector<Tool> tools_of(const ordered_json& list) {
  if (!list.is_array() || list.size() > kMostTools)
    RequestFields::refuse("tools", "must be a list of at most " + std::to_string(kMostTools) + " tools");
  std::vector<Tool> tools;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = "tools[" + std::to_string(i) + "]";
    const ordered_json function = member(list[i], "function");
    if (member(list[i], "type") != "function" || !function.is_object())
      RequestFields::refuse(place, "must be {\"type\": \"function\", \"function\": {…}}");
    if (!is_name(member(function, "name")))
      RequestFields::refuse(place + ".function.name",
                            "must have 1 to 64 letters, digits, underscores, hyphens and dots");
    tools.push_back({function["name"].get<std::string>(),
                     std::make_shared<ordered_json>(schema_of(function, place + ".function"))});
    if (std::ranges::count(tools, tools.back().name, &Tool::name) > 1)
      RequestFields::refuse(place + ".function.name", "is the name of two tools");
  }
  return tools;
}

struct ToolChoice {
  std::string mode = "auto";       // or none, required
  bool named = false;              // one call, of the function that is named
  std::vector<std::string> names;  // of the tools that may be called; empty: all
};

// The name in {"type": "function", "function": {"name": …}}.
std::optional<std::string> function_name(const ordered_json& choice) {
  const ordered_json name = member(member(choice, "function"), "name");
  return is_name(name) ? std::optional(name.get<std::string>()) : std::nullopt;
}

// {"mode": "auto" or "required", "tools": […]}.
ToolChoice allowed_choice(const ordered_json& allowed) {
  ToolChoice choice;
  const ordered_json tools = member(allowed, "tools"), mode = member(allowed, "mode");
  for (const ordered_json& tool : tools.is_array() ? tools : ordered_json())
    if (const auto name = function_name(tool)) choice.names.push_back(*name);
  if (choice.names.empty() || choice.names.size() != tools.size() || (mode != "auto" && mode != "required"))
    RequestFields::refuse("tool_choice",
                          "of allowed tools must have the mode auto or required, and the names of functions");
  choice.mode = mode.get<std::string>();
  return choice;
}

ToolChoice choice_of(RequestFields& fields) {
  const ordered_json* choice = fields.get("tool_choice");
  if (choice == nullptr) return {};
  for (const char* known : {"auto", "none", "required"})
    if (*choice == known) return {.mode = known};
  if (member(*choice, "type") == "allowed_tools") return allowed_choice(member(*choice, "allowed_tools"));
  const auto name = function_name(*choice);
  if (!name)
    RequestFields::refuse("tool_choice",
                          "must be \"auto\", \"none\", \"required\" or "
                          "{\"type\": \"function\", \"function\": {\"name\": …}}");
  return {"required", true, {*name}};
}

// Leaves the tools that may be called.
void keep_allowed(std::vector<Tool>& tools, const std::vector<std::string>& names) {
  if (names.empty()) return;
  for (const std::string& name : names)
    if (std::ranges::find(tools, name, &Tool::name) == tools.end())
      RequestFields::refuse("tool_choice", "names '" + name + "', which is no tool");
  std::erase_if(tools, [&](const Tool& tool) { return std::ranges::find(names, tool.name) == names.end(); });
}

}  // namespace

ToolUse read_tools(RequestFields& fields, WritingRequest& writing) {
  const WritingModel& model = *writing.model;
  const ordered_json* list = fields.get("tools");
  const ToolChoice choice = choice_of(fields);
  const bool many = fields.flag("parallel_tool_calls").value_or(true) && !choice.named;
  std::vector<Tool> tools = list == nullptr ? std::vector<Tool>() : tools_of(*list);
  const bool forced = choice.mode == "required";
  if (tools.empty() && (forced || !choice.names.empty()))
    RequestFields::refuse("tool_choice", "needs 'tools'");
  if (tools.empty() || choice.mode == "none") return {};
  ToolUse use{.tools = std::make_shared<ordered_json>(*list), .named = choice.named};
  keep_allowed(tools, choice.names);
  if (!model.tool_calls) {
    if (forced) RequestFields::refuse("tool_choice", "cannot force a call: " + model.no_tool_calls);
    if (!choice.names.empty())
      RequestFields::refuse("tool_choice", "cannot restrict calls: " + model.no_tool_calls);
    return use;
  }
  use.format = model.tool_calls;
  std::string key = many ? "calls" : "call";
  for (const Tool& tool : tools) key += " " + tool.name + " " + tool.parameters->dump();
  // An answer in the request's format, which a forced call replaces. It may have a call's marker in a text.
  const AllowedTexts* answer = forced || !writing.allowed ? nullptr : &*writing.allowed;
  if (answer != nullptr) {
    use.format->begins_answer = true;
    key += " or " + answer->key;
  }
  GenerateSession& session = *writing.session;
  session.pieces = model.tool_bytes();
  if (forced) session.stop = StopStrings({});  // which could cut a call's markup
  try {
    const auto automaton = automaton_of(model, session, key, [&] {
      const PatternPtr calls = tool_call_pattern(*use.format, tools, many);
      return answer == nullptr ? calls : zoo::choice({calls, answer->pattern()});
    });
    writing.batch->options.constraint = forced || answer != nullptr
                                            ? make_text_constraint(automaton, session)
                                            : make_tool_constraint(automaton, session, *use.format);
  } catch (const Error& error) {
    RequestFields::refuse("tools", std::string("are refused: ") + error.what());
  }
  return use;
}

void prepare_tool_calls(ordered_json& message, const std::string& place, const WritingModel& model) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end()) return;
  if (!calls->is_array()) RequestFields::refuse(place + ".tool_calls", "must be a list of calls");
  for (std::size_t i = 0; i < calls->size(); ++i) {
    ordered_json& call = (*calls)[i];
    if (!member(call, "function").is_object())
      RequestFields::refuse(place + ".tool_calls[" + std::to_string(i) + "]",
                            "must be an object with a 'function'");
    const auto arguments = call["function"].find("arguments");
    if (arguments == call["function"].end()) continue;
    const bool as_text = model.tool_calls && model.tool_calls->arguments_are_text;
    if (*arguments == "") *arguments = "{}";  // as some clients send that there are none
    if (arguments->is_string() && !as_text) {
      ordered_json object = parse_ordered_json(arguments->get_ref<const std::string&>());
      if (!object.is_object())
        RequestFields::refuse(place + ".tool_calls[" + std::to_string(i) + "].function.arguments",
                              "must be the JSON text of an object");
      *arguments = std::move(object);
    } else if (arguments->is_object() && as_text) {
      *arguments = arguments->dump();
    }
  }
}

}  // namespace zoo
