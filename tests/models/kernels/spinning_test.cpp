#include "models/kernels/spinning.h"

#include <chrono>
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

// True if the condition holds soon; threads start and end when the system finds the time.
template <class Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < 3000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

std::int64_t sum_to(std::int64_t count) {
  std::atomic<std::int64_t> sum = 0;
  parallel_for(0, count, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) sum += i;
  });
  return sum;
}

}  // namespace

TEST_CASE("The processor times of a process are those of its threads") {
  const test::TemporaryDirectory tasks;
  for (const auto& [thread, text] : {std::pair("11", "1000 20 3\n"), std::pair("12", "500 7 1\n"),
                                     std::pair("13", ""), std::pair("14", "no number")}) {
    std::filesystem::create_directory(tasks / thread);
    std::ofstream(tasks / thread / "schedstat") << text;
  }
  std::filesystem::create_directory(tasks / "15");
  const ProcessorTimes times = processor_times(tasks.path());
  CHECK(times.ran == 1500);
  CHECK(times.waited == 27);
  CHECK(processor_times(tasks / "none").ran == 0);
}

TEST_CASE("Threads wait for processors when they are kept from running a tenth of the time") {
  const ProcessorTimes before{1000, 100};
  CHECK(waited_for_processors(before, {1800, 190}));
  CHECK_FALSE(waited_for_processors(before, {1920, 180}));
  CHECK_FALSE(waited_for_processors(before, before));
  // A thread has ended in between.
  CHECK_FALSE(waited_for_processors(before, {900, 50}));
  CHECK(waited_for_processors(before, {900, 150}));
}

TEST_CASE("Spins become short when threads keep waiting, and stay so for up to two seconds") {
  Contention often;
  for (int i = 0; i < 100; ++i) CHECK_FALSE(often.observe(i % 2 == 0));
  Contention always;
  for (int i = 0; i < 3; ++i) CHECK_FALSE(always.observe(true));
  for (int i = 0; i < 50; ++i) CHECK(always.observe(true));
  for (int i = 0; i < 19; ++i) CHECK(always.observe(false));
  CHECK_FALSE(always.observe(false));
  CHECK_FALSE(always.observe(true));
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

TEST_CASE("A watch of spins begins and ends") {
  const std::size_t before = threads_of_this_process();
  {
    const SpinWatch watch;
    CHECK(comes_true([&] { return threads_of_this_process() > before; }));
  }
  CHECK(comes_true([&] { return threads_of_this_process() == before; }));
}
