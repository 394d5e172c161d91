#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// An error that a client is told, in OpenAI's shape: {"error": {"message", "type", "param", "code"}}.
class ApiError : public std::runtime_error {
 public:
  /// `param` is the field that the error is about, `code` a word for programs; either may be empty (null).
  ApiError(int status, const std::string& message, std::string param = "", std::string code = "")
      : std::runtime_error(message), status_(status), param_(std::move(param)), code_(std::move(code)) {}

  int status() const { return status_; }
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }
  std::string json() const;

  /// The error's "tokens" and "limit": of a text without tokens, or with more than are read.
  std::optional<std::pair<std::size_t, std::int64_t>> tokens;

 private:
  int status_;
  std::string param_, code_;
};

/// An error in Anthropic's shape: {"type": "error", "error": {"type", "message"}}.
nlohmann::ordered_json anthropic_error(int status, const std::string& message);

}  // namespace zoo
