#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// An error that a client is told, in OpenAI's shape: {"error": {"message", "type", "param", "code"}}.
struct ApiError : std::runtime_error {
  ApiError(int http_status, const std::string& message, std::string field = "", std::string word = "")
      : std::runtime_error(message), status(http_status), param(std::move(field)), code(std::move(word)) {}

  std::string json() const;

  int status;
  std::string param, code;  // the field that it is about, a word for programs; either may be empty (null)
  /// The error's "tokens" and "limit": of a text without tokens, or with more than are read.
  std::optional<std::pair<std::size_t, std::int64_t>> tokens;
};

/// An error in Anthropic's shape: {"type": "error", "error": {"type", "message"}}.
nlohmann::ordered_json anthropic_error(int status, const std::string& message);

}  // namespace zoo
