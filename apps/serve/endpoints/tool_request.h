#pragma once

#include <nlohmann/json_fwd.hpp>

#include "apps/serve/generation_call.h"

namespace zoo {

/// What a chat request wants of tools, as OpenAI's fields `tools`, `tool_choice` and `parallel_tool_calls`.
struct ToolUse {
  std::shared_ptr<const nlohmann::ordered_json> tools;  // for the chat template; null: none
  std::optional<ToolCallFormat> format;                 // null: calls are not recognised and stay in the text
  bool named = false;                                   // the request names the function
};

/// Sets the constraint of the answer: a call that is begun, or demanded, has arguments that the tool's
/// parameters allow. Throws ApiError naming the field.
ToolUse read_tools(RequestFields& fields, const WritingModel& model, WritingRequest& writing);

/// Makes arguments, which clients send as JSON text, what the template wants. Throws ApiError.
void prepare_tool_calls(nlohmann::ordered_json& message, const std::string& place, const WritingModel& model);

}  // namespace zoo
