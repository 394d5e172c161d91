#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include <c10/util/FunctionRef.h>

namespace zoo {

/// Calls body(first, last) for parts of [begin, end), each at least `grain` long, on the threads of
/// torch::set_num_threads. at::parallel_for itself works on one thread alone in a source that is not compiled
/// for OpenMP, as ours are not.
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  c10::function_ref<void(std::int64_t, std::int64_t)> body);

/// A thread's place among those that run one function together.
class Team {
 public:
  /// What a team's threads share.
  struct Shared {
    static constexpr std::size_t kMostShares = 32;
    std::atomic<std::size_t> arrived = 0;
    std::array<std::atomic<std::size_t>, kMostShares> taken{};
  };

  Team(std::size_t rank, std::size_t size, Shared& shared) : rank_(rank), size_(size), shared_(shared) {}

  std::size_t rank() const { return rank_; }
  std::size_t size() const { return size_; }

  /// Goes on when all of the team have come here.
  void wait() const;

  /// The same; what this thread will read next comes into its cache while it waits for the others.
  void wait(std::span<const std::byte> next) const;

  struct Part {
    std::size_t first, last;
  };
  /// This thread's part of [0, count) in multiples of `unit`.
  Part part_of(std::size_t count, std::size_t unit = 1) const {
    const std::size_t units = (count + unit - 1) / unit;
    const std::size_t first = units * rank_ / size_ * unit, last = units * (rank_ + 1) / size_ * unit;
    return {first < count ? first : count, last < count ? last : count};
  }

  /// Calls body(part) for parts of [0, count), which begin at multiples of `unit`: most of a thread's own
  /// part first, then what is left of all, whoever comes first, so that a thread that was held up does not
  /// hold up the others. All threads must share equally often.
  void share(std::size_t count, std::size_t unit, c10::function_ref<void(Part)> body) const;

 private:
  std::size_t rank_, size_;
  Shared& shared_;
  mutable std::size_t expected_ = 0;  // of arrived, when all have come
  mutable std::size_t shares_ = 0;
};

/// Runs work(team) on all threads of torch::set_num_threads at once: many short steps that wait for one
/// another cost less than as many parallel loops. `work` must not throw, and all threads must wait equally
/// often.
void run_team(c10::function_ref<void(const Team&)> work);

/// The most threads that run_team() starts here.
std::size_t team_size();

}  // namespace zoo
