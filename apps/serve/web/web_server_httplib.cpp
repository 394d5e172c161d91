#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/serve/api_error.h"
#include "apps/serve/web/web_connection.h"
#include "data/base/error.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

// The connection that this thread answers; cpp-httplib's handlers are not told.
thread_local WebConnection* current = nullptr;
thread_local bool too_many = false;

using Enqueued = decltype(std::declval<httplib::TaskQueue&>().enqueue(std::function<void()>()));

// A thread for each connection, up to a limit. Beyond it, the thread that accepts refuses.
class ConnectionThreads : public httplib::TaskQueue {
 public:
  ConnectionThreads(std::size_t most, std::atomic<std::size_t>& running) : most_(most), running_(running) {}

  Enqueued enqueue(std::function<void()> answer) override {
    if (running_ < most_ && begin(answer)) return static_cast<Enqueued>(true);
    too_many = true;
    answer();
    too_many = false;
    return static_cast<Enqueued>(true);
  }

  void shutdown() override {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return running_ == 0; });
  }

 private:
  // False if the system has no thread to give.
  bool begin(const std::function<void()>& answer) {
    const auto end = [this] {
      const std::lock_guard lock(mutex_);
      --running_;
      ended_.notify_all();
    };
    ++running_;
    try {
      std::thread([answer, end] {
        answer();
        end();
      }).detach();
      return true;
    } catch (const std::system_error&) {
      end();
      return false;
    }
  }

  std::size_t most_;
  std::atomic<std::size_t>& running_;
  std::mutex mutex_;
  std::condition_variable ended_;
};

// RFC 9110, section 5.6.2.
bool is_token(const std::string& name) {
  constexpr std::string_view kSigns = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [&](char c) {
    return is_ascii_digit(c) || is_ascii_letter(c) || kSigns.find(c) != kSigns.npos;
  });
}

std::string ambiguity_of(const httplib::Request& request) {
  for (const auto& [name, value] : request.headers)
    if (!is_token(name)) return "a header has a name that none may have";
  for (const char* name : {"Content-Length", "Transfer-Encoding", "Host", "Authorization", "X-Api-Key",
                           "Origin", "Content-Type", "Content-Encoding"}) {
    if (request.get_header_value_count(name) > 1)
      return "the header " + std::string(name) + " is there more than once";
  }
  if (request.has_header("Content-Length") && request.has_header("Transfer-Encoding"))
    return "the request has a Content-Length and a Transfer-Encoding";
  return "";
}

WebRequest request_of(const httplib::Request& request) {
  constexpr std::string_view kScheme = "http://";
  std::string path = request.path;
  // A client of HTTP/1.0, which no page is, need not name the host.
  std::string host = request.get_header_value("Host");
  if (host.empty() && request.version == "HTTP/1.0") host = "localhost";
  if (path.starts_with(kScheme)) {  // as to a proxy; it replaces the header (RFC 9112, section 3.2.2)
    const std::size_t end = std::min(path.find('/', kScheme.size()), path.size());
    host = path.substr(kScheme.size(), end - kScheme.size());
    path = end < path.size() ? path.substr(end) : "/";
  }
  return {.method = request.method,
          .path = path,
          .query = request.target.substr(std::min(request.target.find('?'), request.target.size())),
          .body = request.body,
          .header = [&request, host](const char* name) -> std::optional<std::string> {
            if (name == std::string_view("Host")) return host;
            if (request.has_header(name)) return request.get_header_value(name);
            return std::nullopt;
          },
          .ambiguity = ambiguity_of(request),
          .client_left = [connection = current] { return connection->client_left(); }};
}

void send(const WebReply& reply, const httplib::Request& request, httplib::Response& response) {
  response.status = reply.status;
  for (const auto& [name, value] : reply.headers) response.set_header(name.c_str(), value);
  if (!reply.stream) return response.set_content(reply.body, reply.type.c_str());
  const auto provide = [stream = reply.stream](std::size_t, httplib::DataSink& sink) {
    bool arrives = true;
    stream([&](std::string_view text) {
      arrives = arrives && !current->client_left() && sink.write(text.data(), text.size());
      return arrives;
    });
    if (arrives) sink.done();
    return arrives;
  };
  if (request.version != "HTTP/1.0")
    return response.set_chunked_content_provider(reply.type.c_str(), provide);
  current->close_after_reply();  // which ends the answer: HTTP/1.0 has no chunks (RFC 9112, section 6.1)
  response.set_content_provider(reply.type.c_str(), provide);
}

// The library does not tell why a port cannot be had: tries again.
std::string why_not_bound(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return "no address of this name is known";
  const int socket = ::socket(found->ai_family, found->ai_socktype, found->ai_protocol);
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const int error = ::bind(socket, found->ai_addr, found->ai_addrlen) == 0 ? 0 : errno;
  ::close(socket);
  ::freeaddrinfo(found);
  if (error == 0 || error == EADDRINUSE)
    return "another program has the port; give another --port, or 0 for a free one";
  if (error == EADDRNOTAVAIL) return "this machine does not have the address";
  if (error == EACCES) return "ports below 1024 need more rights; give another --port";
  return std::strerror(error);
}

const char* words_for(int status) {
  switch (status) {
    case 408: return "the request took too long to arrive";
    case 413: return "the body is too large";
    case 431: return "the header lines are too large";
    case 414: return "the path is too long";
    case 499: return "the client closed the connection";
    default: return "this is no request that the server understands";
  }
}

}  // namespace

struct WebServer::Impl : public httplib::Server {
  Impl(const WebLimits& given, WebServer::Gate gate, WebServer::Handler handler) : limits(given) {
    // The library's default, SO_REUSEPORT, lets a second server take half of the connections.
    set_socket_options([](socket_t socket) {
      const int on = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    });
    set_payload_max_length(limits.body_bytes);
    new_task_queue = [this] { return new ConnectionThreads(limits.connections, running); };
    const auto answer = [handler = std::move(handler)](const httplib::Request& request,
                                                       httplib::Response& response) {
      const bool has_interim = request.version != "HTTP/1.0";
      current->set_probe(has_interim ? WebConnection::Probe::kInterim : WebConnection::Probe::kNone);
      const WebReply reply = handler(request_of(request));
      if (has_interim) current->set_probe(WebConnection::Probe::kAnswer);
      send(reply, request, response);
    };
    set_pre_routing_handler(
        [gate = std::move(gate), answer](const httplib::Request& request, httplib::Response& response) {
          const std::optional<WebReply> refusal = gate(request_of(request));
          if (!refusal && request.method != "DELETE") return HandlerResponse::Unhandled;
          current->close_after_reply();  // the body is not read, so nothing can follow it
          response.set_header("Connection", "close");
          if (refusal) send(*refusal, request, response);
          else answer(request, response);  // the library would wait for a body of DELETE
          return HandlerResponse::Handled;
        });
    Get(".*", answer);
    Post(".*", answer);
    Options(".*", answer);
    // Errors of the library itself, whose replies have no body.
    set_error_handler(httplib::Server::Handler([](const httplib::Request&, httplib::Response& response) {
      if (!response.body.empty()) return;
      if (current->broken_limit() != 0) response.status = current->broken_limit();
      current->close_after_reply();
      response.set_header("Connection", "close");
      response.set_content(ApiError(response.status, words_for(response.status)).json(), "application/json");
    }));
  }

  // The library lets five clients wait to be accepted. One more tries again after a second.
  void accept_many() { ::listen(svr_sock_, SOMAXCONN); }

  bool process_and_close_socket(socket_t socket) override {
    WebConnection connection(socket, limits, stopping);
    if (too_many) {
      refuse(connection);
      return false;
    }
    current = &connection;
    while (!stopping && connection.wait_for_request()) {
      bool closed = false;
      if (!process(*this, connection, closed) || closed || connection.closes()) break;
    }
    current = nullptr;
    return true;
  }

  // Versions of cpp-httplib differ in how they pass the addresses, which nothing here reads.
  template <class Server> static bool process(Server& server, WebConnection& connection, bool& closed) {
    const std::function<void(httplib::Request&)> prepare = [](httplib::Request& request) {
      request.headers.erase("Accept-Encoding");  // replies are not compressed
      request.ranges.clear();
    };
    if constexpr (requires { server.process_request(connection, false, closed, prepare); }) {
      return server.process_request(connection, false, closed, prepare);
    } else {
      return server.process_request(connection, std::string(), 0, std::string(), 0, false, closed, prepare);
    }
  }

  static void refuse(WebConnection& connection) {
    const std::string body = ApiError(503, "the server has as many connections as it takes").json();
    const std::string reply =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n" +
        std::string("Content-Length: ") + std::to_string(body.size()) + "\r\n\r\n" + body;
    connection.write(reply.data(), reply.size());
    connection.close_soon();
  }

  WebLimits limits;
  std::atomic<bool> stopping = false, ended = false;
  std::atomic<std::size_t> running = 0;
};

WebServer::WebServer(const WebLimits& limits, Gate gate, Handler handler)
    : impl_(std::make_unique<Impl>(limits, std::move(gate), std::move(handler))) {}

WebServer::~WebServer() = default;

int WebServer::bind(const std::string& host, int port) {
  const int bound = port == 0 ? impl_->bind_to_any_port(host.c_str())
                              : (impl_->bind_to_port(host.c_str(), port) ? port : -1);
  if (bound < 0) throw Error("cannot listen on ", host, " port ", port, ": ", why_not_bound(host, port));
  impl_->accept_many();
  return bound;
}

void WebServer::run() {
  if (!impl_->stopping) impl_->listen_after_bind();
  impl_->ended = true;
}

void WebServer::stop() {
  impl_->stopping = true;
  // The library's stop() has no effect before it listens.
  while (!impl_->ended && !impl_->is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (impl_->is_running()) impl_->stop();
}

std::size_t WebServer::connections() const { return impl_->running; }

}  // namespace zoo
