#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

#include "apps/serve/endpoints/chat_dialect.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "models/tasks/tool_constraint.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostTools = 128, kLongestName = 64;

bool is_name(const ordered_json& name) {
  if (!name.is_string()) return false;
  const auto& text = name.get_ref<const std::string&>();
  return !text.empty() && text.size() <= kLongestName && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
}

// The parameters of a function as a schema of an object: without them, it has none.
ordered_json schema_of(const ordered_json& function, const std::string& place) {
  ordered_json schema{{"properties", ordered_json::object()}};
  if (const auto given = function.find("parameters"); given != function.end() && !given->is_null())
    schema = *given;
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
    const bool is_function = list[i].is_object() && list[i].value("type", ordered_json()) == "function" &&
                             list[i].contains("function") && list[i]["function"].is_object();
    if (!is_function) RequestFields::refuse(place, "must be {\"type\": \"function\", \"function\": {…}}");
    const ordered_json& function = list[i]["function"];
    if (!function.contains("name") || !is_name(function["name"]))
      RequestFields::refuse(place + ".function.name",
                            "must have 1 to 64 letters, digits, underscores, hyphens and dots");
    tools.push_back({function["name"].get<std::string>(),
                     std::make_shared<ordered_json>(schema_of(function, place + ".function"))});
    const auto same = [&](const Tool& tool) { return tool.name == tools.back().name; };
    if (std::ranges::count_if(tools, same) > 1)
      RequestFields::refuse(place + ".function.name", "is the name of two tools");
  }
  return tools;
}

// "auto", "none", "required", or the name of a function after a colon.
std::string choice_of(RequestFields& fields) {
  const ordered_json* choice = fields.get("tool_choice");
  if (choice == nullptr) return "auto";
  for (const char* known : {"auto", "none", "required"})
    if (*choice == known) return known;
  const auto function = choice->is_object() ? choice->find("function") : choice->end();
  if (function == choice->end() || !function->is_object() ||
      !is_name(function->value("name", ordered_json())))
    RequestFields::refuse("tool_choice",
                          "must be \"auto\", \"none\", \"required\" or "
                          "{\"type\": \"function\", \"function\": {\"name\": …}}");
  return ":" + (*function)["name"].get<std::string>();
}

}  // namespace

ToolUse read_tools(RequestFields& fields, WritingRequest& writing) {
  const WritingModel& model = *writing.model;
  const ordered_json* list = fields.get("tools");
  const std::string choice = choice_of(fields);
  const bool many = fields.flag("parallel_tool_calls").value_or(true) && choice.front() != ':';
  std::vector<Tool> tools = list == nullptr ? std::vector<Tool>() : tools_of(*list);
  const bool forced = choice != "auto" && choice != "none";
  if (tools.empty() && forced) RequestFields::refuse("tool_choice", "needs 'tools'");
  if (tools.empty() || choice == "none") return {};
  ToolUse use{.tools = std::make_shared<ordered_json>(*list), .named = choice.front() == ':'};
  if (use.named) {
    std::erase_if(tools, [&](const Tool& tool) { return ":" + tool.name != choice; });
    if (tools.empty())
      RequestFields::refuse("tool_choice", "names '" + choice.substr(1) + "', which is no tool");
  }
  if (!model.tool_calls) {
    if (forced) RequestFields::refuse("tool_choice", "cannot force a call: " + model.no_tool_calls);
    return use;
  }
  if (writing.batch->options.constraint)
    RequestFields::refuse(
        "tools", "and another field constrain the text: give only one, or \"tool_choice\": \"none\"");
  use.format = model.tool_calls;
  std::string key = many ? "calls" : "call";
  for (const Tool& tool : tools) key += " " + tool.name + " " + tool.parameters->dump();
  GenerateSession& session = *writing.session;
  session.pieces = model.tool_bytes();
  if (forced) session.stop = StopStrings({});  // which could cut a call's markup
  try {
    const auto automaton =
        automaton_of(model, session, key, [&] { return tool_call_pattern(*use.format, tools, many); });
    writing.batch->options.constraint = forced ? make_text_constraint(automaton, session)
                                               : make_tool_constraint(automaton, session, *use.format);
  } catch (const Error& error) {
    RequestFields::refuse("tools", std::string("are refused: ") + error.what());
  }
  return use;
}

void prepare_tool_calls(ordered_json& message, const std::string& place, const WritingModel& model) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return;
  for (std::size_t i = 0; i < calls->size(); ++i) {
    ordered_json& call = (*calls)[i];
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object()) continue;
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
