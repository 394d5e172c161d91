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
  Team::Shared shared;
  if (size == 1) return work(Team(0, 1, shared));
#pragma omp parallel num_threads(size)
  {
    const auto rank = static_cast<std::size_t>(omp_get_thread_num());
    work(Team(rank, static_cast<std::size_t>(omp_get_num_threads()), shared));
  }
}

#else

void Team::wait() const {}

void run_team(c10::function_ref<void(const Team&)> work) {
  Team::Shared shared;
  work(Team(0, 1, shared));
}

#endif

void Team::wait(std::span<const std::byte> next) const {
  constexpr std::size_t kLine = 64, kMost = std::size_t{256} << 10;  // a part of the second-level cache
  expected_ += size_;
  if (shared_.arrived.fetch_add(1, std::memory_order_relaxed) + 1 < expected_) {
    const std::size_t end = std::min(next.size(), kMost);
    for (std::size_t at = 0; at < end && shared_.arrived.load(std::memory_order_relaxed) < expected_;
         at += kLine)
      __builtin_prefetch(next.data() + at, 0, 2);
  }
  wait();
}

void Team::share(std::size_t count, std::size_t unit, c10::function_ref<void(Part)> body) const {
  constexpr std::size_t kEighths = 7, kPieces = 4;  // of a thread's own part, and of what is left of it
  const std::size_t units = (count + unit - 1) / unit;
  const auto call = [&](std::size_t first, std::size_t last) {
    if (first < last) body({first * unit, std::min(last * unit, count)});
  };
  const auto begin_of = [&](std::size_t rank) { return units * rank / size_; };
  const auto own_end = [&](std::size_t rank) {
    const std::size_t own = begin_of(rank + 1) - begin_of(rank);
    return begin_of(rank) + (size_ == 1 || shares_ >= Shared::kMostShares ? own : own * kEighths / 8);
  };
  call(begin_of(rank_), own_end(rank_));
  if (size_ > 1 && shares_ < Shared::kMostShares) {
    auto& taken = shared_.taken[shares_];
    // Piece i is of the thread i % size, its own pieces one behind the other.
    for (std::size_t i; (i = taken.fetch_add(1, std::memory_order_relaxed)) < kPieces * size_;) {
      const std::size_t rank = i % size_, piece = i / size_;
      const std::size_t first = own_end(rank), rest = begin_of(rank + 1) - first;
      call(first + rest * piece / kPieces, first + rest * (piece + 1) / kPieces);
    }
  }
  ++shares_;
}

}  // namespace zoo
