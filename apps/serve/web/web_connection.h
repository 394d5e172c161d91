#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include <httplib.h>

#include "apps/serve/web/web_server.h"

namespace zoo {

/// A client's socket as cpp-httplib reads and writes it, with limits that the library lacks: on the time in
/// which a request arrives, on the size of all header lines together, and on the time in which an answer is
/// taken.
class WebConnection : public httplib::Stream {
 public:
  WebConnection(int socket, const WebLimits& limits, const std::atomic<bool>& stopping);
  /// Closes the socket after the client has had time to read the answer.
  ~WebConnection() override;

  /// Waits for the first byte of a request and starts its limits. False if none comes.
  bool wait_for_request();

  /// What may be sent to a client that has closed its own side, to learn whether it still reads: an interim
  /// answer before the answer (RFC 9110, section 15.2), or nothing more than the answer. HTTP/1.0 has no
  /// interim answers: its clients look as if they had left.
  enum class Probe { kNone, kInterim, kAnswer };
  void set_probe(Probe probe);
  /// True once the client has closed the connection. Any thread may ask.
  bool client_left() const;
  /// Status that says which limit the request broke: 408, 413 or 431; 400: its lines end wrongly; 0: none.
  int broken_limit() const { return broken_limit_; }
  void close_after_reply() { closes_ = true; }
  /// The client has less time to read the answer: the thread that accepts has others to refuse.
  void close_soon() { closes_soon_ = true; }
  bool closes() const { return closes_ || broken_limit_ != 0; }

  bool is_readable() const override { return true; }
  bool is_writable() const override { return !client_left(); }
  ssize_t read(char* to, std::size_t size) override;
  ssize_t write(const char* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override { get_remote_ip_and_port(ip, port); }
  socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool wait_for(short events, Clock::time_point deadline) const;
  ssize_t refuse(int status);
  bool receive();
  void find_end_of_headers();

  int socket_;
  const WebLimits& limits_;
  const std::atomic<bool>& stopping_;
  std::string buffer_;         // received and not read
  std::size_t taken_ = 0;      // bytes of the buffer that are read
  std::size_t received_ = 0;   // bytes of this request
  std::size_t line_ends_ = 0;  // characters of "\r\n\r\n" that the header has ended with so far
  bool in_headers_ = true, closes_ = false;
  bool bare_line_end_ = false;  // a header line ends with "\n" alone, which others may read in another way
  char last_ = '\0';            // of the header
  int broken_limit_ = 0;
  Clock::time_point deadline_;
  bool closes_soon_ = false;
  mutable std::optional<Clock::time_point> stops_;  // since the server does
  mutable std::mutex probing_;
  mutable Probe probe_ = Probe::kNone;
};

}  // namespace zoo
