#include "data/base/directory_lock.h"

#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/data/support.h"
#include "tests/support/temporary_directory.h"

using Catch::Contains;
using zoo::DirectoryLock;
using zoo::test::message_of;
using zoo::test::read_bytes;
using zoo::test::TemporaryDirectory;
using zoo::test::write_bytes;

namespace {

/// A lock as another process would hold it, under the name of any process.
class HeldLock {
 public:
  HeldLock(const std::filesystem::path& directory, pid_t owner) {
    write_bytes(directory / ".lock", std::to_string(owner));
    descriptor_ = ::open((directory / ".lock").c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(::flock(descriptor_, LOCK_EX | LOCK_NB) == 0);
  }
  ~HeldLock() { release(); }
  void release() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }

 private:
  int descriptor_ = -1;
};

pid_t ended_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

}  // namespace

TEST_CASE("a directory's lock names its owner and is free when that one is gone") {
  const TemporaryDirectory directory;
  const std::string self = std::to_string(::getpid());
  {
    const DirectoryLock lock(directory.path());
    CHECK(read_bytes(directory.path() / ".lock") == self);
    CHECK_THAT(message_of([&] { DirectoryLock{directory.path()}; }),
               Contains("is being written by process " + self));
  }
  const DirectoryLock again(directory.path());
}

TEST_CASE("a directory's lock outlives a killed process for a moment only") {
  const TemporaryDirectory directory;
  const pid_t ended = ended_process();
  SECTION("which the next one waits for") {
    HeldLock held(directory.path(), ended);
    std::thread release([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      held.release();
    });
    CHECK_NOTHROW(DirectoryLock{directory.path()});
    release.join();
  }
  SECTION("but one that stays is another's, such as another machine's") {
    const HeldLock held(directory.path(), ended);
    CHECK_THAT(message_of([&] { DirectoryLock{directory.path()}; }), Contains(std::to_string(ended)));
  }
}
