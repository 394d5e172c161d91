#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zoo {

/// A request of HTTP/1.1.
struct WebRequest {
  std::string method, path, query, body;  // the path without its query, decoded
  std::function<std::optional<std::string>(const char* name)> header;
  std::string ambiguity;              // why others could read the head in another way; empty: they could not
  std::function<bool()> client_left;  // true once the client has closed the connection
};

/// An answer: a body, or a stream of server-sent events.
struct WebReply {
  int status = 200;
  std::string type = "application/json", body;
  std::vector<std::pair<std::string, std::string>> headers;
  /// Writes the whole stream; `write` returns false once the client has left. It replaces the body.
  std::function<void(const std::function<bool(std::string_view)>& write)> stream;
};

struct WebLimits {
  std::size_t body_bytes = std::size_t{4} << 20;
  std::size_t header_bytes = std::size_t{16} << 10;  // of all lines before the body
  std::size_t connections = 128;                     // further ones are answered 503
  double request_seconds = 20;                       // in which a request must have arrived
  double idle_seconds = 30;                          // that a connection waits for its next request
  double write_seconds = 20;                         // that a client may leave the rest of an answer unread
};

/// An HTTP server: a thread for each connection. It serves no file.
class WebServer {
 public:
  using Handler = std::function<WebReply(const WebRequest&)>;
  /// Called before the body is read; its reply refuses the request and closes the connection.
  using Gate = std::function<std::optional<WebReply>(const WebRequest&)>;

  /// Both are called by many threads at once. Throws Error if this tzoo was built without cpp-httplib.
  WebServer(const WebLimits& limits, Gate gate, Handler handler);
  ~WebServer();

  /// Returns the port; 0 chooses a free one. Throws Error naming address and port that cannot be had.
  int bind(const std::string& host, int port);

  /// Answers until stop() and until the requests in progress are answered.
  void run();
  /// Called once, by another thread than run().
  void stop();

  std::size_t connections() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zoo
