#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace zoo {

/// Counters of the server as Prometheus reads them (text format 0.0.4).
class ServerMetrics {
 public:
  void answered(const std::string& path, int status, double seconds);
  void first_token(double seconds);

  struct Number {
    std::string name, type, help;
    double value = 0;
  };
  /// The text, with `numbers` of this moment after the counters.
  std::string text(const std::vector<Number>& numbers) const;

 private:
  struct Sum {
    double seconds = 0;
    std::int64_t count = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::int64_t> answers_;
  std::map<std::string, Sum> durations_;
  Sum first_tokens_;
};

}  // namespace zoo
