#include "apps/serve/web/web_connection.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace zoo {
namespace {

using std::chrono::milliseconds;

// How often a wait looks whether the server stops.
constexpr milliseconds kLook{100};
// Bytes that a closing connection still reads: closing at once would discard the answer.
constexpr std::size_t kLingerBytes = std::size_t{1} << 20;
constexpr milliseconds kLingerTime{500}, kShortLingerTime{10};
// A client has this long once the server stops.
constexpr milliseconds kStopTime{1000};
constexpr std::string_view kEndOfHeaders = "\r\n\r\n", kInterim = "HTTP/1.1 100 Continue\r\n\r\n";

std::chrono::nanoseconds duration_of(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

}  // namespace

WebConnection::WebConnection(int socket, const WebLimits& limits, const std::atomic<bool>& stopping)
    : socket_(socket), limits_(limits), stopping_(stopping) {
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

WebConnection::~WebConnection() {
  ::shutdown(socket_, SHUT_WR);
  std::array<char, 4096> rest{};
  const auto deadline = Clock::now() + (closes_soon_ ? kShortLingerTime : kLingerTime);
  for (std::size_t dropped = 0; dropped < kLingerBytes && wait_for(POLLIN, deadline);) {
    const ssize_t count = ::recv(socket_, rest.data(), rest.size(), MSG_DONTWAIT);
    if (count <= 0) break;
    dropped += static_cast<std::size_t>(count);
  }
  ::close(socket_);
}

bool WebConnection::wait_for(short events, Clock::time_point deadline) const {
  for (;;) {
    if (stopping_ && !stops_) stops_ = Clock::now() + kStopTime;
    if (stops_) deadline = std::min(deadline, *stops_);
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    pollfd socket{.fd = socket_, .events = events, .revents = 0};
    // Bytes that have arrived are not late, even if this thread runs late.
    if (::poll(&socket, 1, static_cast<int>(std::clamp(left, milliseconds(0), kLook).count())) > 0)
      return true;
    if (left.count() <= 0) return false;
  }
}

bool WebConnection::wait_for_request() {
  buffer_.erase(0, taken_);
  taken_ = 0;
  const auto idle_until = Clock::now() + duration_of(limits_.idle_seconds);
  for (;;) {
    // Empty lines before a request are passed over (RFC 9112, section 2.2).
    while (buffer_.starts_with("\r\n")) buffer_.erase(0, 2);
    if (!buffer_.empty()) break;
    if (stopping_ || Clock::now() >= idle_until) return false;
    if (wait_for(POLLIN, std::min(idle_until, Clock::now() + kLook)) && !receive()) return false;
  }
  deadline_ = Clock::now() + duration_of(limits_.request_seconds);
  received_ = buffer_.size();
  in_headers_ = true;
  line_ends_ = 0;
  bare_line_end_ = false;
  last_ = '\0';
  find_end_of_headers();
  return true;
}

void WebConnection::set_probe(Probe probe) {
  const std::lock_guard turn(probing_);
  probe_ = probe;
}

bool WebConnection::client_left() const {
  pollfd socket{.fd = socket_, .events = POLLIN | POLLRDHUP, .revents = 0};
  if (::poll(&socket, 1, 0) <= 0) return false;
  if ((socket.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return true;
  if ((socket.revents & POLLRDHUP) == 0) return false;
  // What is sent to a client that does not read comes back as an error.
  const std::lock_guard turn(probing_);
  if (probe_ == Probe::kInterim) {
    ::send(socket_, kInterim.data(), kInterim.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    probe_ = Probe::kAnswer;
  }
  return probe_ == Probe::kNone;
}

ssize_t WebConnection::refuse(int status) {
  broken_limit_ = status;
  return -1;
}

void WebConnection::find_end_of_headers() {
  for (const char found : buffer_) {
    if (!in_headers_) return;
    bare_line_end_ = bare_line_end_ || (found == '\n' && last_ != '\r');
    last_ = found;
    line_ends_ = found == kEndOfHeaders[line_ends_] ? line_ends_ + 1 : (found == '\r' ? 1 : 0);
    in_headers_ = line_ends_ < kEndOfHeaders.size();
  }
}

bool WebConnection::receive() {
  std::array<char, 16384> piece{};
  const ssize_t count = ::recv(socket_, piece.data(), piece.size(), MSG_DONTWAIT);
  if (count <= 0) return false;
  buffer_.assign(piece.data(), static_cast<std::size_t>(count));
  taken_ = 0;
  received_ += buffer_.size();
  find_end_of_headers();
  return true;
}

ssize_t WebConnection::read(char* to, std::size_t size) {
  if (broken_limit_ != 0) return -1;
  if (bare_line_end_) return refuse(400);
  if (taken_ == buffer_.size()) {
    if (in_headers_ && received_ >= limits_.header_bytes) return refuse(431);
    if (received_ >= limits_.header_bytes + limits_.body_bytes) return refuse(413);
    if (!wait_for(POLLIN, deadline_)) return refuse(408);
    if (!receive()) return 0;
  }
  const std::size_t count = std::min(size, buffer_.size() - taken_);
  std::memcpy(to, buffer_.data() + taken_, count);
  taken_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t WebConnection::write(const char* from, std::size_t size) {
  const auto next_deadline = [&] { return Clock::now() + duration_of(limits_.write_seconds); };
  auto deadline = next_deadline();
  std::size_t sent = 0;
  while (sent < size) {
    if (!wait_for(POLLOUT, deadline)) return -1;
    const ssize_t count = ::send(socket_, from + sent, size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return -1;
    if (count <= 0) continue;
    sent += static_cast<std::size_t>(count);
    deadline = next_deadline();
  }
  return static_cast<ssize_t>(size);
}

}  // namespace zoo
