#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace zoo {

struct HttpRequest {
  std::string url;
  std::string token;        // sent as a bearer to the first host only; empty: none
  std::int64_t offset = 0;  // first byte that is wanted
};

/// Answer of a server, after redirects.
struct HttpAnswer {
  long status = 0;               // 0: the transfer failed
  std::string fault;             // cause of a failed transfer, or the server's error message
  bool is_cut = false;           // the connection was there and ended early: another try may help
  std::int64_t retry_after = 0;  // seconds that the server asks to wait
};

/// Receives the next piece of the body, which begins at `offset` of the file; false ends the transfer.
using HttpSink = std::function<bool(std::int64_t offset, std::string_view piece)>;

/// GET over HTTP or HTTPS. Only the body of a successful answer reaches `sink`. A server that sends nothing
/// for a minute fails. Throws Error if this tzoo was built without libcurl.
HttpAnswer http_get(const HttpRequest& request, const HttpSink& sink);

}  // namespace zoo
