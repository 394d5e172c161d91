#pragma once

#include <atomic>
#include <chrono>
#include <functional>

namespace zoo {

/// Thrown where a request's work ends because its client has closed the connection.
struct ClientLeft {};

/// What ends a request before its answer: the client leaves, the server stops, the time is over.
class RequestWatch {
 public:
  /// How often a wait calls check().
  static constexpr std::chrono::milliseconds kInterval{20};

  /// `client_left` may be null; `stopping` must outlive the watch.
  RequestWatch(std::function<bool()> client_left, const std::atomic<bool>& stopping, double most_seconds)
      : client_left_(std::move(client_left)), stopping_(stopping), most_seconds_(most_seconds) {}

  /// Throws ClientLeft, or ApiError 503.
  void check() const;
  /// Since the request began.
  double seconds() const;

 private:
  std::function<bool()> client_left_;
  const std::atomic<bool>& stopping_;
  double most_seconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace zoo
