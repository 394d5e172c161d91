#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/serve/api_error.h"
#include "apps/serve/web/web_server.h"

namespace zoo {

/// Rules for the requests that reach the server's handlers. A foreign web page must neither read nor cause
/// anything: DNS rebinding is stopped by the Host header, cross-site requests (CSRF) by Origin and by the
/// type of the body.
struct AccessRules {
  std::string host;                               // that the server listens on
  std::string api_key;                            // empty: none
  std::size_t body_bytes = std::size_t{4} << 20;  // of a request, at most
  std::vector<std::string> allowed_hosts;  // host_name()s of this machine, beside localhost and addresses
  std::vector<std::string>
      allowed_origins;  // pages of others that may use the API, such as "http://localhost:3000"

  /// The error that refuses a request, from its head alone; nothing if it may pass.
  std::optional<ApiError> refusal(const WebRequest& request) const;

  bool allows_origin(const std::string& origin) const;
};

/// True for localhost and the addresses that only this machine reaches.
bool is_loopback(const std::string& host);

/// "localhost" of "localhost:8080", "::1" of "[::1]:8080"; nothing if it is no host.
std::optional<std::string> host_name(const std::string& host_and_port);

}  // namespace zoo
