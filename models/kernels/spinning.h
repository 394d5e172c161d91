#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <thread>

// Threads that share a computation wait for one another by spinning, in GCC's OpenMP for milliseconds.
// Spinning is fastest while each thread has its own processor. When another program needs one, a thread with
// work waits for one that spins, so that a busy machine makes every barrier slow. keep_spin_watch() detects
// this from Linux's schedstat and shortens the spins.
namespace zoo {

/// Shortens spins while it lives: OpenMP spins briefly when it has more threads than processors, so this adds
/// sleeping threads.
class ShortSpins {
 public:
  ShortSpins();
  ~ShortSpins();

 private:
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

/// Nanoseconds that this process's threads have waited for a processor, by Linux's `schedstat` of each thread
/// in this folder; 0 if there is none.
std::uint64_t time_waited(const std::filesystem::path& tasks = "/proc/self/task");

/// Processors that threads waited for on average between two moments this long apart: 0.5 if another program
/// takes one of their processors whole, since the system gives each half of it.
double processors_waited_for(std::uint64_t before, std::uint64_t after, double seconds);

/// Decides when spins should be short: while a program keeps a processor for itself, but not while one takes
/// it for parts of the time, when threads that sleep would lose more than those that wait for it.
class Contention {
 public:
  /// Call ten times a second with processors_waited_for(); returns whether spins should be short until the
  /// next call. They are so for half a second and then tried long again, after twice the time if they were
  /// too long again.
  bool observe(double waited);

 private:
  static constexpr int kFirst = 5, kMost = 20;  // tenths of a second
  int much_ = 0, little_ = 0;                   // calls in a row
  int left_ = 0, next_ = kFirst;
};

/// From the first call on, for the rest of the process, a thread checks whether other programs need the
/// processors, and shortens spins while they do, unless OMP_WAIT_POLICY or GOMP_SPINCOUNT decide how threads
/// wait.
void keep_spin_watch();

}  // namespace zoo
