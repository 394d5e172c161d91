#include "data/base/atomic_file.h"

#include <csignal>

#include <sys/resource.h>
#include <sys/stat.h>

#include "data/base/mapped_file.h"
#include "tests/data/support.h"
#include "tests/support/temporary_directory.h"

namespace fs = std::filesystem;
using Catch::Contains;
using zoo::test::count_entries;
using zoo::test::message_of;
using zoo::test::read_bytes;
using zoo::test::TemporaryDirectory;
using zoo::test::write_bytes;

namespace {

/// Limits the size of this process's files: a write beyond `bytes` fails, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit small = {bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit old_{};
};

}  // namespace

TEST_CASE("an AtomicFile appears only at commit") {
  const TemporaryDirectory folder;
  const fs::path path = write_bytes(folder / "a", "old");
  {
    zoo::AtomicFile file(path);
    file.write("new");
    CHECK(read_bytes(path) == "old");
    file.commit();
    CHECK(read_bytes(path) == "new");
  }
  CHECK(count_entries(folder.path()) == 1);
}

TEST_CASE("an AtomicFile without commit leaves the old file and nothing else") {
  const TemporaryDirectory folder;
  write_bytes(folder / "a", "old");
  { zoo::AtomicFile(folder / "a").write(std::string(3 << 20, 'x')); }
  { zoo::AtomicFile(folder / "b").write("x"); }
  CHECK(read_bytes(folder / "a") == "old");
  CHECK(count_entries(folder.path()) == 1);
}

TEST_CASE("an AtomicFile keeps small and large writes in order") {
  const TemporaryDirectory folder;
  const std::string large(5 << 20, 'L'), nearly(1048570, 'n');
  zoo::AtomicFile file(folder / "a");
  std::string expected;
  for (const std::string& part :
       {std::string("first"), large, std::string("middle"), nearly, std::string("last-10bt")}) {
    file.write(part);
    expected += part;
  }
  file.rewrite(3, "STL");
  expected.replace(3, 3, "STL");
  file.write("end");
  file.commit();
  CHECK((read_bytes(folder / "a") == expected + "end"));
}

TEST_CASE("a full disk is an error that leaves the old file whole") {
  const TemporaryDirectory folder;
  const fs::path path = write_bytes(folder / "model", "old");
  const std::size_t size = GENERATE(std::size_t{8192}, std::size_t{4 << 20});  // at commit, and in write()
  {
    const FileSizeLimit limit(4096);
    CHECK_THAT(message_of([&] { zoo::write_file(path, std::string(size, 'x')); }),
               Contains("cannot write '" + path.string() + "': File too large"));
  }
  CHECK(read_bytes(path) == "old");
  CHECK(count_entries(folder.path()) == 1);
}

TEST_CASE("an AtomicFile never takes the place of a directory or device") {
  const TemporaryDirectory folder;
  CHECK_THAT(message_of([&] { zoo::AtomicFile file(folder.path()); }), Contains("it is a directory"));
  // The pipe stands for /dev/null, which a broken AtomicFile would replace.
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(message_of([&] { zoo::write_file(folder / "pipe", "x"); }),
             Contains("it is not a regular file"));
  CHECK(fs::is_fifo(folder / "pipe"));
}

TEST_CASE("what a link leads to is written, and keeps who may read it") {
  const TemporaryDirectory folder;
  fs::create_directory(folder / "disk");
  write_bytes(folder / "disk/file", "old");
  fs::permissions(folder / "disk/file", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("disk/file", folder / "link");
  fs::create_symlink("link", folder / "further");
  zoo::write_file(folder / "further", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_bytes(folder / "disk/file") == "new");
  CHECK(fs::status(folder / "disk/file").permissions() == (fs::perms::owner_read | fs::perms::owner_write));

  fs::create_directory_symlink(fs::absolute(folder / "disk/new"), folder / "run");
  for (const char* content : {"1", "2"}) {  // a link to nothing, and one to a directory
    zoo::AtomicDirectory directory(folder / "run/");
    write_bytes(directory.path() / "weights", content);
    directory.commit();
    CHECK(fs::is_symlink(folder / "run"));
    CHECK(read_bytes(folder / "disk/new/weights") == content);
  }
  CHECK(count_entries(folder / "disk") == 2);
}

TEST_CASE("paths that cannot be examined are Errors too") {
  const TemporaryDirectory folder;
  const std::string long_name(300, 'n');
  CHECK_THAT(message_of([&] { zoo::write_file(folder / long_name, "x"); }), Contains("File name too long"));
  CHECK_THAT(message_of([&] { zoo::read_file(folder / long_name); }), Contains("File name too long"));
  CHECK_THAT(message_of([&] { zoo::write_file(folder / "none/a", "x"); }),
             Contains("No such file or directory"));
  write_bytes(folder / "file", "");
  CHECK_THAT(message_of([&] { zoo::make_directories(folder / "file/sub"); }),
             Contains("cannot create the directory"));
  CHECK_THAT(message_of([&] { zoo::read_file(folder.path()); }), Contains("it is a directory"));
}

TEST_CASE("a device that never ends is refused") {
  CHECK(zoo::read_file("/dev/null").empty());
  CHECK_THAT(message_of([] { zoo::read_file("/dev/zero"); }), Contains("/dev/zero") && Contains("256 MiB"));
}

TEST_CASE("an AtomicDirectory takes the place of the old one in one step") {
  const TemporaryDirectory folder;
  const fs::path target = folder / "best";
  fs::create_directory(target);
  write_bytes(target / "old-only", "1");
  {
    zoo::AtomicDirectory directory(target);
    write_bytes(directory.path() / "weights", "2");
    CHECK(fs::exists(target / "old-only"));
    CHECK_FALSE(fs::exists(target / "weights"));
    directory.commit();
    CHECK(read_bytes(target / "weights") == "2");
    CHECK_FALSE(fs::exists(target / "old-only"));
  }
  CHECK(count_entries(folder.path()) == 1);
}

TEST_CASE("an AtomicDirectory puts back what a killed process has put aside") {
  const TemporaryDirectory folder;
  fs::create_directory(folder / ".best.tmp-old");
  write_bytes(folder / ".best.tmp-old/weights", "old");
  { zoo::AtomicDirectory directory(folder / "best"); }
  CHECK(read_bytes(folder / "best/weights") == "old");
  // The new one was there already, the old one not yet removed.
  fs::create_directory(folder / ".best.tmp-old");
  { zoo::AtomicDirectory directory(folder / "best/"); }
  CHECK(read_bytes(folder / "best/weights") == "old");
  CHECK(count_entries(folder.path()) == 1);
}

TEST_CASE("an AtomicDirectory makes a first one, parents included, and nothing without commit") {
  const TemporaryDirectory folder;
  {
    zoo::AtomicDirectory directory(folder / "runs/a/");
    write_bytes(directory.path() / "x", "1");
    directory.commit();
  }
  CHECK(read_bytes(folder / "runs/a/x") == "1");
  { zoo::AtomicDirectory directory(folder / "runs/b"); }
  CHECK(count_entries(folder / "runs") == 1);
}

TEST_CASE("an AtomicDirectory does not replace a file") {
  const TemporaryDirectory folder;
  write_bytes(folder / "notes", "precious");
  CHECK_THAT(message_of([&] { zoo::AtomicDirectory directory(folder / "notes"); }),
             Contains("it is not a directory"));
  CHECK(read_bytes(folder / "notes") == "precious");
  CHECK(count_entries(folder.path()) == 1);
}

TEST_CASE("Two writers of one target with the same process number do not meet") {
  const TemporaryDirectory folder;
  zoo::AtomicFile first(folder / "a");
  first.write("first");
  zoo::AtomicFile second(folder / "a");
  second.write("second");
  second.commit();
  CHECK(read_bytes(folder / "a") == "second");
  first.commit();
  CHECK(read_bytes(folder / "a") == "first");
  zoo::AtomicDirectory one(folder / "b");
  write_bytes(one.path() / "of-one", "");
  zoo::AtomicDirectory other(folder / "b");
  CHECK(count_entries(other.path()) == 0);
  CHECK(count_entries(one.path()) == 1);
  other.commit();
  one.commit();
  CHECK(fs::exists(folder / "b/of-one"));
}

TEST_CASE("a MappedFile holds the bytes, and writing to them changes no file") {
  const TemporaryDirectory folder;
  const fs::path path = write_bytes(folder / "a", "abc");
  const zoo::MappedFile file(path);
  REQUIRE(file.bytes().size() == 3);
  CHECK(file.bytes()[1] == std::byte{'b'});
  file.data()[1] = std::byte{'X'};
  CHECK(file.bytes()[1] == std::byte{'X'});
  CHECK(read_bytes(path) == "abc");
}

TEST_CASE("a MappedFile of an empty file is empty, and of what is no file an error") {
  const TemporaryDirectory folder;
  CHECK(zoo::MappedFile(write_bytes(folder / "empty", "")).bytes().empty());
  CHECK_THAT(message_of([&] { zoo::MappedFile file(folder / "none"); }),
             Contains("none") && Contains("No such file"));
  CHECK_THAT(message_of([&] { zoo::MappedFile file(folder.path()); }), Contains("not a regular file"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(message_of([&] { zoo::MappedFile file(folder / "pipe"); }), Contains("not a regular file"));
}
