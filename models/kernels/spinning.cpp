#include "models/kernels/spinning.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <utility>

#include <ATen/Parallel.h>

#include "models/kernels/openmp.h"

namespace zoo {
namespace {

// A thread that takes no signals: they belong to the program's own threads.
template <class Work> std::thread start_thread(const Work& work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(work);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

ShortSpins::ShortSpins() {
  // The caller is one of the team's threads: a team of two starts one more.
  const int spare = static_cast<int>(openmp::num_procs()) - at::get_num_threads();
  const auto team = static_cast<unsigned>(std::max(2, spare + 2));
  thread_ = start_thread([this, team] { openmp::parallel(team, [this] { done_.wait(false); }); });
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

double processors_waited_for(const ProcessorTimes& before, const ProcessorTimes& after, double seconds) {
  if (after.waited <= before.waited) return 0;  // ended threads no longer count
  return static_cast<double>(after.waited - before.waited) / (1e9 * seconds);
}

bool Contention::observe(double waited) {
  constexpr double kMuch = 0.45;
  constexpr int kInRow = 2;
  if (left_ > 0) return --left_ > 0;
  much_ = waited > kMuch ? much_ + 1 : 0;
  little_ = waited > kMuch ? 0 : little_ + 1;
  if (little_ == kInRow) next_ = kFirst;
  if (much_ < kInRow) return false;
  left_ = std::exchange(next_, std::min(2 * next_, kMost));
  much_ = little_ = 0;
  return true;
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

void keep_spin_watch() {
  const bool decided = std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr;
  // Never destroyed: a process that was forked has no such thread to wait for.
  static const SpinWatch* const watch = decided ? nullptr : new SpinWatch;
  static_cast<void>(watch);
}

void SpinWatch::watch() {
  using Clock = std::chrono::steady_clock;
  constexpr auto kInterval = std::chrono::milliseconds(100);
  std::optional<ShortSpins> short_spins;
  Contention contention;
  ProcessorTimes before = processor_times();
  Clock::time_point then = Clock::now();
  ::pthread_setname_np(::pthread_self(), "zoo-spin-watch");
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, kInterval, [this] { return ended_; })) {
    const ProcessorTimes after = processor_times();
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - then).count();
    const bool shorter = contention.observe(processors_waited_for(before, after, seconds));
    before = after;
    then = now;
    if (shorter && !short_spins) short_spins.emplace();
    if (!shorter) short_spins.reset();
  }
}

}  // namespace zoo
