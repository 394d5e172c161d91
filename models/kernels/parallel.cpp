#include "models/kernels/parallel.h"

#include <algorithm>

#include <ATen/Parallel.h>
#ifdef _OPENMP
#include <omp.h>
#endif

namespace zoo {

void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  c10::function_ref<void(std::int64_t, std::int64_t)> body) {
  at::parallel_for(begin, end, grain, body);
}

std::size_t team_size() {
  return at::in_parallel_region() ? 1 : static_cast<std::size_t>(at::get_num_threads());
}

#ifdef _OPENMP

// An orphaned barrier binds to the parallel region that called it.
void Team::wait() const {
#pragma omp barrier
}

void run_team(c10::function_ref<void(const Team&)> work) {
  const auto size = static_cast<int>(team_size());
  std::atomic<std::size_t> arrived = 0;
  if (size == 1) return work(Team(0, 1, arrived));
#pragma omp parallel num_threads(size)
  {
    const auto rank = static_cast<std::size_t>(omp_get_thread_num());
    work(Team(rank, static_cast<std::size_t>(omp_get_num_threads()), arrived));
  }
}

#else

void Team::wait() const {}

void run_team(c10::function_ref<void(const Team&)> work) {
  std::atomic<std::size_t> arrived = 0;
  work(Team(0, 1, arrived));
}

#endif

void Team::wait(std::span<const std::byte> next) const {
  constexpr std::size_t kLine = 64, kMost = std::size_t{256} << 10;  // a part of the second-level cache
  expected_ += size_;
  if (arrived_.fetch_add(1, std::memory_order_relaxed) + 1 < expected_) {
    const std::size_t end = std::min(next.size(), kMost);
    for (std::size_t at = 0; at < end && arrived_.load(std::memory_order_relaxed) < expected_; at += kLine)
      __builtin_prefetch(next.data() + at, 0, 2);
  }
  wait();
}

}  // namespace zoo
