#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <thread>

// Threads that share a computation wait for one another by spinning, GCC's OpenMP for milliseconds. Nothing
// is quicker while each has a processor of its own; where another program wants one, a thread that has work
// waits behind one that spins.
namespace zoo {

/// While it lives, such threads sleep after a moment: OpenMP spins shortly when there are more of its threads
/// than processors, and some that sleep make it so.
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

/// Nanoseconds that the threads of this process have run, and that they were ready to run and did not.
struct ProcessorTimes {
  std::uint64_t ran = 0, waited = 0;
};

/// From Linux's `schedstat` of each thread in this folder; zeros where there is none.
ProcessorTimes processor_times(const std::filesystem::path& tasks = "/proc/self/task");

/// Whether threads waited for a processor between two moments more than a tenth of the time.
bool waited_for_processors(const ProcessorTimes& before, const ProcessorTimes& after);

/// When spins should be short: a program that wants the processors for a moment now and then is no reason,
/// one that keeps wanting them is.
class Contention {
 public:
  /// Takes whether threads have waited, ten times a second; says whether spins should be short.
  bool observe(bool waited);

 private:
  int level_ = 0;
  bool high_ = false;
};

/// While it lives, a thread of its own looks whether other programs want the processors, and has spins be
/// short while they do.
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
