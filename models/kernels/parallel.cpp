#include "models/kernels/parallel.h"

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
  if (size == 1) return work(Team(0, 1));
#pragma omp parallel num_threads(size)
  {
    const auto rank = static_cast<std::size_t>(omp_get_thread_num());
    work(Team(rank, static_cast<std::size_t>(omp_get_num_threads())));
  }
}

#else

void Team::wait() const {}

void run_team(c10::function_ref<void(const Team&)> work) {
  work(Team(0, 1));
}

#endif

}  // namespace zoo
