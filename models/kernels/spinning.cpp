#include "models/kernels/spinning.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <mutex>
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

[[noreturn]] void watch_spins() {
  using Clock = std::chrono::steady_clock;
  constexpr auto kInterval = std::chrono::milliseconds(100);
  std::optional<ShortSpins> short_spins;
  Contention contention;
  std::uint64_t before = time_waited();
  Clock::time_point then = Clock::now();
  ::pthread_setname_np(::pthread_self(), "zoo-spin-watch");
  for (;;) {
    std::this_thread::sleep_for(kInterval);
    const std::uint64_t after = time_waited();
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - then).count();
    const bool shorter = contention.observe(processors_waited_for(before, after, seconds));
    before = after;
    then = now;
    if (shorter && !short_spins) short_spins.emplace();
    if (!shorter) short_spins.reset();
  }
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

std::uint64_t time_waited(const std::filesystem::path& tasks) {
  std::uint64_t sum = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator task(tasks, error), end; !error && task != end;
       task.increment(error)) {
    std::ifstream file(task->path() / "schedstat");
    std::uint64_t ran = 0, waited = 0;
    if (file >> ran >> waited) sum += waited;  // else the thread is just ending
  }
  return sum;
}

double processors_waited_for(std::uint64_t before, std::uint64_t after, double seconds) {
  if (after <= before) return 0;  // ended threads no longer count
  return static_cast<double>(after - before) / (1e9 * seconds);
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

void keep_spin_watch() {
  static std::once_flag once;
  std::call_once(once, [] {
    const bool decided =
        std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr;
    // Detached: a process that was forked has no such thread to wait for.
    if (!decided) start_thread(watch_spins).detach();
  });
}

}  // namespace zoo
