#include "models/kernels/spinning.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <optional>

#include <ATen/Parallel.h>

#include "models/kernels/openmp.h"

namespace zoo {
namespace {

// A thread that takes no signals: they belong to the program's own threads.
template <class Work>
std::thread start_thread(const Work& work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(work);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

// The caller is one of the team's threads: a team of two starts one more.
unsigned sleepers() {
  const auto processors = static_cast<int>(openmp::num_procs());
  return static_cast<unsigned>(std::max(2, processors - at::get_num_threads() + 2));
}

}  // namespace

ShortSpins::ShortSpins() {
  thread_ =
      start_thread([this, count = sleepers()] { openmp::parallel(count, [this] { done_.wait(false); }); });
}

ShortSpins::~ShortSpins() {
  done_ = true;
  done_.notify_all();
  if (thread_.joinable()) thread_.join();
}

ProcessorTimes processor_times(const std::filesystem::path& tasks) {
  ProcessorTimes sum;
  std::error_code error;
  for (std::filesystem::directory_iterator task(tasks, error), end; !error && task != end;
       task.increment(error)) {
    std::ifstream file(task->path() / "schedstat");
    ProcessorTimes times;
    if (!(file >> times.ran >> times.waited)) continue;  // the thread is just ending
    sum.ran += times.ran;
    sum.waited += times.waited;
  }
  return sum;
}

bool waited_for_processors(const ProcessorTimes& before, const ProcessorTimes& after) {
  // Ended threads no longer count.
  const auto since = [](std::uint64_t first, std::uint64_t last) { return last > first ? last - first : 0; };
  const std::uint64_t ran = since(before.ran, after.ran), waited = since(before.waited, after.waited);
  return waited > 0 && waited * 10 > ran + waited;
}

bool Contention::observe(bool waited) {
  constexpr int kHigh = 4, kMost = 20;
  level_ = std::clamp(level_ + (waited ? 1 : -1), 0, kMost);
  high_ = level_ >= kHigh || (high_ && level_ > 0);
  return high_;
}

SpinWatch::SpinWatch() : thread_(start_thread([this] { watch(); })) {}

SpinWatch::~SpinWatch() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ends_.notify_all();
  thread_.join();
}

void SpinWatch::watch() {
  constexpr auto kInterval = std::chrono::milliseconds(100);
  std::optional<ShortSpins> short_spins;
  Contention contention;
  ProcessorTimes before = processor_times();
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, kInterval, [this] { return ended_; })) {
    const ProcessorTimes now = processor_times();
    const bool shorter = contention.observe(waited_for_processors(before, now));
    before = now;
    if (shorter && !short_spins) short_spins.emplace();
    if (!shorter) short_spins.reset();
  }
}

}  // namespace zoo
