#include "apps/serve/server_metrics.h"

#include <limits>
#include <sstream>

namespace zoo {
namespace {

void describe(std::ostream& out, const std::string& name, const std::string& type, const std::string& help) {
  out << "# HELP " << name << " " << help << "\n# TYPE " << name << " " << type << "\n";
}

}  // namespace

void ServerMetrics::answered(const std::string& path, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++answers_[{path, status}];
  Sum& sum = durations_[path];
  sum.seconds += seconds;
  ++sum.count;
}

void ServerMetrics::first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_tokens_.seconds += seconds;
  ++first_tokens_.count;
}

std::string ServerMetrics::text(const std::vector<Number>& numbers) const {
  std::ostringstream out;
  out.precision(std::numeric_limits<double>::digits10);  // or large counters stand still
  const std::lock_guard lock(mutex_);
  describe(out, "tzoo_requests_total", "counter", "Requests answered, by path and status.");
  for (const auto& [key, count] : answers_)
    out << "tzoo_requests_total{path=\"" << key.first << "\",status=\"" << key.second << "\"} " << count
        << "\n";
  describe(out, "tzoo_request_seconds", "summary",
           "Seconds from a request's arrival to the end of its answer.");
  for (const auto& [path, sum] : durations_) {
    out << "tzoo_request_seconds_sum{path=\"" << path << "\"} " << sum.seconds << "\n";
    out << "tzoo_request_seconds_count{path=\"" << path << "\"} " << sum.count << "\n";
  }
  describe(out, "tzoo_first_token_seconds", "summary",
           "Seconds from a request's submission to its first token.");
  out << "tzoo_first_token_seconds_sum " << first_tokens_.seconds << "\n";
  out << "tzoo_first_token_seconds_count " << first_tokens_.count << "\n";
  for (const Number& number : numbers) {
    describe(out, number.name, number.type, number.help);
    out << number.name << " " << number.value << "\n";
  }
  return out.str();
}

}  // namespace zoo
