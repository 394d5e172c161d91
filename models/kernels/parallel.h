#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include <c10/util/FunctionRef.h>

namespace zoo {

/// Calls body(first, last) for parts of [begin, end), each at least `grain` long, on the threads of
/// torch::set_num_threads. at::parallel_for itself uses a single thread in sources compiled without OpenMP,
/// like ours.
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  c10::function_ref<void(std::int64_t, std::int64_t)> body);

/// A thread's view of a team of threads that run one function together.
class Team {
 public:
  /// State shared by a team's threads.
  struct Shared {
    static constexpr std::size_t kMostShares = 32;
    std::atomic<std::size_t> arrived = 0;
    std::array<std::atomic<std::size_t>, kMostShares> taken{};
  };

  Team(std::size_t rank, std::size_t size, Shared& shared) : rank_(rank), size_(size), shared_(shared) {}

  std::size_t rank() const { return rank_; }
  std::size_t size() const { return size_; }

  /// Barrier: waits until all threads of the team have arrived.
  void wait() const;

  /// The same; prefetches `next`, which this thread reads afterwards, while it waits.
  void wait(std::span<const std::byte> next) const;

  struct Part {
    std::size_t first, last;
  };
  /// This thread's part of [0, count), in multiples of `unit`.
  Part part_of(std::size_t count, std::size_t unit = 1) const {
    const std::size_t units = (count + unit - 1) / unit;
    const std::size_t first = units * rank_ / size_ * unit, last = units * (rank_ + 1) / size_ * unit;
    return {first < count ? first : count, last < count ? last : count};
  }

  /// Calls body(part) for parts of [0, count) that begin at multiples of `unit`: most of a thread's own part
  /// first, then remaining parts of any thread (work stealing), so that a delayed thread does not delay the
  /// others. All threads must call share() equally often.
  void share(std::size_t count, std::size_t unit, c10::function_ref<void(Part)> body) const;

 private:
  std::size_t rank_, size_;
  Shared& shared_;
  mutable std::size_t expected_ = 0;  // value of `arrived` when all threads have arrived
  mutable std::size_t shares_ = 0;
};

/// Runs work(team) on all threads of torch::set_num_threads at once: many short steps with barriers cost less
/// than as many parallel loops. `work` must not throw, and all threads must wait equally often.
void run_team(c10::function_ref<void(const Team&)> work);

/// Maximum number of threads that run_team() starts here.
std::size_t team_size();

}  // namespace zoo
