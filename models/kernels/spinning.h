#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <thread>

// Threads that share a computation wait for one another by spinning, in GCC's OpenMP for milliseconds.
// Spinning is fastest while each thread has its own processor. When another program needs one, a thread with
// work waits for one that spins, so that a busy machine makes every barrier slow. SpinWatch detects this from
// Linux's schedstat and shortens the spins.
namespace zoo {

/// Shortens spins while it lives: OpenMP spins briefly when it has more threads than processors, so this adds
/// sleeping threads.
class ShortSpins {
 public:
  ShortSpins();
  ~ShortSpins();
  ShortSpins(const ShortSpins&) = delete;
  ShortSpins& operator=(const ShortSpins&) = delete;

 private:
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

/// Nanoseconds that this process's threads have run, and have waited for a processor.
struct ProcessorTimes {
  std::uint64_t ran = 0, waited = 0;
};

/// Reads Linux's `schedstat` of each thread in this folder; returns zeros if there is none.
ProcessorTimes processor_times(const std::filesystem::path& tasks = "/proc/self/task");

/// True if threads waited for a processor more than a tenth of the time between two moments.
bool waited_for_processors(const ProcessorTimes& before, const ProcessorTimes& after);

/// Decides when spins should be short: not when a program briefly needs the processors now and then, but when
/// one keeps needing them.
class Contention {
 public:
  /// Call ten times a second with whether threads have waited; returns whether spins should be short.
  bool observe(bool waited);

 private:
  int level_ = 0;
  bool high_ = false;
};

/// While it lives, its own thread checks whether other programs need the processors, and shortens spins while
/// they do.
class SpinWatch {
 public:
  SpinWatch();
  ~SpinWatch();
  SpinWatch(const SpinWatch&) = delete;
  SpinWatch& operator=(const SpinWatch&) = delete;

 private:
  void watch();

  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace zoo
