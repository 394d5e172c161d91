#include <array>
#include <cstdlib>
#include <thread>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/serve/web/web_server.h"
#include "data/base/error.h"
#include "tests/fuzz/fuzz.h"

namespace zoo {
namespace {

// A server that answers with what it understood, for the whole run.
class EchoServer {
 public:
  EchoServer()
      : server_(
            {.body_bytes = 1000, .header_bytes = 1000, .request_seconds = 5},
            [](const WebRequest&) { return std::nullopt; },
            [](const WebRequest& request) { return WebReply{.body = request.path + request.body}; }),
        port_(server_.bind("127.0.0.1", 0)),
        thread_([this] { server_.run(); }) {}
  ~EchoServer() {
    server_.stop();
    thread_.join();
  }

  /// The answer to bytes after which the client sends no more.
  std::string answer(std::string_view bytes) const {
    const int client = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(static_cast<std::uint16_t>(port_))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) std::abort();
    while (!bytes.empty()) {
      const ssize_t sent = ::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    ::shutdown(client, SHUT_WR);
    std::string answer;
    std::array<char, 4096> piece{};
    for (ssize_t got = 0; (got = ::recv(client, piece.data(), piece.size(), 0)) > 0;)
      answer.append(piece.data(), static_cast<std::size_t>(got));
    ::close(client);
    // Its thread has memory until it ends, which would count as lost.
    while (server_.connections() > 0) std::this_thread::yield();
    return answer;
  }

 private:
  WebServer server_;
  int port_;
  std::thread thread_;
};

}  // namespace

void fuzz::read(std::string_view input) {
  static const EchoServer server;
  const std::string answer = server.answer(input);
  if (!answer.empty() && !answer.starts_with("HTTP/1.1 ")) std::abort();
  if (!answer.starts_with("HTTP/1.1 200 ")) throw Error("refused");
}

}  // namespace zoo
