#include "models/kernels/parallel.h"

#include <algorithm>
#include <exception>

#include <ATen/Parallel.h>
#include <c10/util/ParallelGuard.h>

#include "models/kernels/openmp.h"

namespace zoo {

void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  c10::function_ref<void(std::int64_t, std::int64_t)> body) {
  const std::int64_t count = end - begin;
  if (count <= 0) return;
  const auto run = [&](std::int64_t rank, std::int64_t first, std::int64_t last) {
    const at::internal::ThreadIdGuard id(static_cast<int>(rank));
    const c10::ParallelGuard guard(true);
    body(first, last);
  };
  if (count <= std::max<std::int64_t>(grain, 1) || at::in_parallel_region() || at::get_num_threads() == 1)
    return run(0, begin, end);

  std::atomic_flag thrown = ATOMIC_FLAG_INIT;
  std::exception_ptr exception;
  openmp::parallel(0, [&] {
    const auto rank = static_cast<std::int64_t>(openmp::thread_num());
    auto parts = static_cast<std::int64_t>(openmp::num_threads());
    if (grain > 0) parts = std::min(parts, (count + grain - 1) / grain);
    const std::int64_t size = (count + parts - 1) / parts, first = begin + rank * size;
    if (first >= end) return;
    try {
      run(rank, first, std::min(end, first + size));
    } catch (...) {
      if (!thrown.test_and_set()) exception = std::current_exception();
    }
  });
  if (exception) std::rethrow_exception(exception);
}

std::size_t team_size() {
  return at::in_parallel_region() ? 1 : static_cast<std::size_t>(at::get_num_threads());
}

void Team::wait() const {
  if (size_ > 1) openmp::barrier();
}

void run_team(c10::function_ref<void(const Team&)> work) {
  const std::size_t size = team_size();
  Team::Shared shared;
  if (size == 1) return work(Team(0, 1, shared));
  openmp::parallel(static_cast<unsigned>(size),
                   [&] { work(Team(openmp::thread_num(), openmp::num_threads(), shared)); });
}

void Team::wait(std::span<const std::byte> next) const {
  constexpr std::size_t kLine = 64, kMost = std::size_t{256} << 10;  // part of the L2 cache
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
  constexpr std::size_t kEighths = 7, kPieces = 4;  // of a thread's own part, and of the rest of it
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
    // Piece i belongs to thread i % size; a thread's pieces come in order.
    for (std::size_t i; (i = taken.fetch_add(1, std::memory_order_relaxed)) < kPieces * size_;) {
      const std::size_t rank = i % size_, piece = i / size_;
      const std::size_t first = own_end(rank), rest = begin_of(rank + 1) - first;
      call(first + rest * piece / kPieces, first + rest * (piece + 1) / kPieces);
    }
  }
  ++shares_;
}

}  // namespace zoo
