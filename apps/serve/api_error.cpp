#include "apps/serve/api_error.h"

#include <nlohmann/json.hpp>

#include "data/base/json.h"

namespace zoo {
namespace {

const char* type_of(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

}  // namespace

std::string ApiError::json() const {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  nlohmann::ordered_json error{
      {"message", what()}, {"type", type_of(status)}, {"param", or_null(param)}, {"code", or_null(code)}};
  if (tokens) error.update({{"tokens", tokens->first}, {"limit", tokens->second}});
  return json_text(nlohmann::ordered_json{{"error", error}});
}

nlohmann::ordered_json anthropic_error(int status, const std::string& message) {
  const char* type = status == 404   ? "not_found_error"
                     : status == 413 ? "request_too_large"
                                     : type_of(status);
  return {{"type", "error"}, {"error", {{"type", status >= 500 ? "api_error" : type}, {"message", message}}}};
}

}  // namespace zoo
