#include "apps/training/parallel/host_address.h"

#include <array>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace zoo {
namespace {

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  operator int() const { return descriptor_; }

 private:
  int descriptor_;
};

std::string own_address(int connected) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> text{};
  auto* own = reinterpret_cast<sockaddr*>(&address);
  if (::getsockname(connected, own, &size) != 0) return "";
  return ::getnameinfo(own, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0 ? text.data()
                                                                                             : "";
}

// This host's address of a connection that was made; empty if none was.
std::string connect_once(const std::string& host, std::uint16_t port, int type, int milliseconds) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = type;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const Socket socket(::socket(at->ai_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (socket < 0) continue;
    if (::connect(socket, at->ai_addr, at->ai_addrlen) != 0) {
      if (errno != EINPROGRESS) continue;
      pollfd waits{.fd = socket, .events = POLLOUT, .revents = 0};
      int fault = 0;
      socklen_t size = sizeof fault;
      if (::poll(&waits, 1, milliseconds) <= 0 ||
          ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &fault, &size) != 0 || fault != 0)
        continue;
    }
    if (std::string address = own_address(socket); !address.empty()) return address;
  }
  return "";
}

}  // namespace

std::string address_towards(const std::string& host) {
  constexpr std::uint16_t kAny = 9;  // a datagram's port; none is sent
  return connect_once(host, kAny, SOCK_DGRAM, 0);
}

bool answers(const std::string& host, std::uint16_t port, std::chrono::milliseconds timeout) {
  using std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause(100);
  constexpr int kOneTry = 2000;
  const auto end = steady_clock::now() + timeout;
  do {
    if (!connect_once(host, port, SOCK_STREAM, kOneTry).empty()) return true;
    std::this_thread::sleep_for(kPause);
  } while (steady_clock::now() < end);
  return false;
}

bool stays_in_host(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace zoo
