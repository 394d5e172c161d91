#include "models/kernels/spinning.h"

#include <chrono>
#include <cstdlib>
#include <fstream>

#include "models/kernels/parallel.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

using namespace zoo;

namespace {

std::size_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

// True if the condition holds soon; threads start and end when the system finds the time. It is asked once
// each time: a list of threads that is read while one of them ends may lack another.
template <class Condition> bool comes_true(const Condition& condition) {
  for (int i = 0; i < 3000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

std::int64_t sum_to(std::int64_t count) {
  std::atomic<std::int64_t> sum = 0;
  parallel_for(0, count, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) sum += i;
  });
  return sum;
}

}  // namespace

TEST_CASE("A process has waited for processors as long as its threads together") {
  const test::TemporaryDirectory tasks;
  for (const auto& [thread, text] : {std::pair("11", "1000 20 3\n"), std::pair("12", "500 7 1\n"),
                                     std::pair("13", ""), std::pair("14", "no number")}) {
    std::filesystem::create_directory(tasks / thread);
    std::ofstream(tasks / thread / "schedstat") << text;
  }
  std::filesystem::create_directory(tasks / "15");
  CHECK(time_waited(tasks.path()) == 27);
  CHECK(time_waited(tasks / "none") == 0);
}

TEST_CASE("Threads that wait a twentieth of a second in a tenth lack half a processor") {
  CHECK(processors_waited_for(7'000'000, 57'000'000, 0.1) == Approx(0.5));
  CHECK(processors_waited_for(7'000'000, 7'000'000, 0.1) == 0);
  CHECK(processors_waited_for(7'000'000, 5'000'000, 0.1) == 0);  // a thread has ended in between
}

TEST_CASE("Spins become short while a processor is taken, and are tried long again") {
  // Another program has half of a processor: threads that share it wait for a quarter.
  Contention half;
  for (int i = 0; i < 100; ++i) CHECK_FALSE(half.observe(i % 5 == 0 ? 0.5 : 0.25));
  // One has a processor for itself: tenths of a second with long and with short spins in turns.
  Contention always;
  for (const int is_short : {5, 10, 20, 20}) {
    CHECK_FALSE(always.observe(0.5));
    for (int i = 0; i < is_short; ++i) CHECK(always.observe(0.5));
    CHECK_FALSE(always.observe(0));
  }
  // It has ended: two quiet tenths, and the next time begins with half a second again.
  CHECK_FALSE(always.observe(0));
  CHECK_FALSE(always.observe(0));
  CHECK_FALSE(always.observe(0.5));
  for (int i = 0; i < 5; ++i) CHECK(always.observe(0.5));
  CHECK_FALSE(always.observe(0.5));
}

TEST_CASE("Short spins need threads that sleep, and computing goes on beside them") {
  REQUIRE(sum_to(1000) == 499500);
  const std::size_t before = threads_of_this_process();
  {
    const ShortSpins spins;
    CHECK(comes_true([&] { return threads_of_this_process() >= before + 2; }));
    CHECK(sum_to(1000) == 499500);
  }
  CHECK(comes_true([&] { return threads_of_this_process() == before; }));
  CHECK(sum_to(1000) == 499500);
}

TEST_CASE("A process keeps one watch of spins, whoever asks for it") {
  const auto watches = [] {
    int count = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string name;
      std::getline(std::ifstream(task.path() / "comm") >> std::ws, name);
      count += name == "zoo-spin-watch" ? 1 : 0;
    }
    return count;
  };
  for (const char* decides : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) ::unsetenv(decides);
  keep_spin_watch();
  keep_spin_watch();
  CHECK(comes_true([&] { return watches() == 1; }));
}
