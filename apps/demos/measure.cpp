#include "apps/demos/measure.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

namespace zoo {
namespace {

constexpr double kEnough = 0.05;

// LibTorch's allocator tells it of every tensor's memory.
class Meter : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    now_ += bytes;
    peak_ = std::max(peak_, now_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t peak() const { return peak_; }

 private:
  std::int64_t now_ = 0, peak_ = 0;
};

double timed(const std::function<void()>& compute) {
  const auto before = std::chrono::steady_clock::now();
  compute();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
}

}  // namespace

Cost cost_of(const std::function<void()>& compute) {
  Cost cost;
  const auto meter = std::make_shared<Meter>();
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
    cost.seconds = timed(compute);
  }
  cost.peak_bytes = meter->peak();
  double spent = cost.seconds;
  while (spent < kEnough) {
    const double seconds = timed(compute);
    cost.seconds = std::min(cost.seconds, seconds);
    spent += seconds;
  }
  return cost;
}

}  // namespace zoo
