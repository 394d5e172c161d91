#include "apps/compute/compute.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <utility>

#include <ATen/Parallel.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "data/base/environment.h"
#include "data/base/process_memory.h"
#include "data/base/processors.h"

namespace zoo {
namespace {

constexpr double kEnough = 0.05;
constexpr int kLeastRuns = 3;

// Receives every tensor allocation from LibTorch's allocator.
class PeakMemory : public c10::MemoryReportingInfoBase {
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

}  // namespace

double seconds_of(const std::function<void()>& compute) {
  const auto before = std::chrono::steady_clock::now();
  compute();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double peak_resident_mb() {
  return static_cast<double>(std::max<std::int64_t>(peak_memory(), 0)) / (1 << 20);
}

Cost cost_of(const std::function<void()>& compute) {
  Cost cost;
  const auto memory = std::make_shared<PeakMemory>();
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, memory);
    cost.seconds = seconds_of(compute);
  }
  cost.peak_bytes = memory->peak();
  double spent = cost.seconds;
  for (int runs = 1; runs < kLeastRuns || spent < kEnough; ++runs) {
    const double seconds = seconds_of(compute);
    cost.seconds = std::min(cost.seconds, seconds);
    spent += seconds;
  }
  return cost;
}

void apply_threads(const ComputeOptions& options) {
  const std::int64_t processors = usable_processors();
  if (!options.threads) {
    if (environment("OMP_NUM_THREADS").empty() && processors < at::get_num_threads())
      at::set_num_threads(static_cast<int>(processors));
    return;
  }
  static bool told = false;
  if (*options.threads > processors && !std::exchange(told, true))
    std::cerr << "note: --threads " << *options.threads << " on " << processors
              << " processors: threads that wait for one another are slower than " << processors << "\n";
  at::set_num_threads(static_cast<int>(*options.threads));
}

}  // namespace zoo
