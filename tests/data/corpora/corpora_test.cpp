#include "data/corpora/corpora.h"

#include "data/corpora/sha256.h"
#include "tests/data/support.h"
#include "tests/support/temporary_directory.h"

namespace fs = std::filesystem;
using Catch::Contains;
using zoo::get_corpus;
using zoo::resolve_dataset;
using zoo::test::count_entries;
using zoo::test::message_of;
using zoo::test::read_bytes;
using zoo::test::ScopedVariable;
using zoo::test::TemporaryDirectory;
using zoo::test::write_bytes;
using zoo::test::write_program;

namespace {

const std::string kShakespeareUrl =
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt";

/// An empty data folder, and a PATH with only the programs of the test.
struct Sandbox {
  TemporaryDirectory folder;
  fs::path data = folder / "data", programs = folder / "programs";
  ScopedVariable data_variable{"TZOO_DATA_DIR", data.string()};
  ScopedVariable path_variable{"PATH", programs.string()};
  Sandbox() { fs::create_directory(programs); }
};

}  // namespace

TEST_CASE("the kjv corpus is made once and then comes from the data folder") {
  const TemporaryDirectory folder;
  const ScopedVariable data("TZOO_DATA_DIR", (folder / "data").string());
  const fs::path path = get_corpus("kjv");
  CHECK(path == folder / "data/kjv.txt");
  const auto& corpus = zoo::corpora().at(0);
  CHECK(fs::file_size(path) == corpus.bytes);
  CHECK(zoo::sha256(read_bytes(path)) == corpus.sha256);
  CHECK(count_entries(folder / "data") == 1);

  const ScopedVariable no_programs("PATH", folder.path().string());
  CHECK(get_corpus("kjv") == path);
  CHECK(resolve_dataset("kjv") == path);

  std::string damaged = read_bytes(path);
  damaged[1000] ^= 1;
  write_bytes(path, damaged);
  CHECK_THAT(message_of([] { get_corpus("kjv"); }), Contains("apt-get install bible-kjv"));
}

TEST_CASE("the groups of books come out of the same package, as tables with hashes of their own") {
  const TemporaryDirectory folder;
  const ScopedVariable data("TZOO_DATA_DIR", folder.path().string());
  CHECK(get_corpus("kjv-groups") == folder / "kjv-groups.tsv");
  CHECK(resolve_dataset("kjv-groups-held-out") == folder / "kjv-groups-held-out.tsv");
}

TEST_CASE("a copy of a corpus is taken from the user's file") {
  const TemporaryDirectory folder;
  const Sandbox other;
  fs::path copy;
  {
    const ScopedVariable path("PATH", "/usr/bin:/bin"), data("TZOO_DATA_DIR", folder.path().string());
    copy = get_corpus("kjv");
  }
  CHECK(get_corpus("kjv", copy) == other.data / "kjv.txt");
  CHECK((read_bytes(other.data / "kjv.txt") == read_bytes(copy)));
}

TEST_CASE("a file that is not the corpus is refused with both hashes") {
  const Sandbox sandbox;
  const fs::path wrong = write_bytes(sandbox.folder / "input.txt", "abc");
  CHECK_THAT(message_of([&] { get_corpus("tinyshakespeare", wrong); }),
             Contains("input.txt") &&
                 Contains("86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed") &&
                 Contains("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad") &&
                 Contains("1115394 bytes") && Contains("3 bytes"));
  CHECK_FALSE(fs::exists(sandbox.data));
  CHECK_THAT(message_of([&] { get_corpus("tinyshakespeare", sandbox.folder / "none.txt"); }),
             Contains("none.txt"));
}

TEST_CASE("a failed download names URL, reason and --file") {
  const Sandbox sandbox;
  write_program(sandbox.programs / "curl", "echo 'curl: (6) Could not resolve host' >&2; exit 6");
  CHECK_THAT(
      message_of([] { get_corpus("tinyshakespeare"); }),
      Contains(kShakespeareUrl) && Contains("curl: (6) Could not resolve host;") && Contains("--file"));
  CHECK_FALSE(fs::exists(sandbox.data));
}

TEST_CASE("without curl the download is wget's, and without either the error says so") {
  const Sandbox sandbox;
  CHECK_THAT(message_of([] { get_corpus("tinyshakespeare"); }),
             Contains(kShakespeareUrl) && Contains("neither curl nor wget") && Contains("--file"));
  write_program(sandbox.programs / "wget", "echo \"wget: $*\" >&2; exit 4");
  CHECK_THAT(message_of([] { get_corpus("tinyshakespeare"); }), Contains("wget: --") && Contains("--file"));
}

TEST_CASE("a download with the wrong content leaves no file") {
  const Sandbox sandbox;
  write_program(sandbox.programs / "curl", "printf '<html>Please log in</html>'");
  CHECK_THAT(message_of([] { get_corpus("tinyshakespeare"); }),
             Contains(kShakespeareUrl + " is not the corpus tinyshakespeare") && Contains("26 bytes"));
  CHECK_FALSE(fs::exists(sandbox.data));
}

TEST_CASE("an unknown corpus is an error with the list and the nearest name") {
  CHECK_THAT(message_of([] { get_corpus("tinyshakespear"); }),
             Contains("'tinyshakespear'") && Contains("kjv, tinyshakespeare") &&
                 Contains("did you mean 'tinyshakespeare'?"));
}

TEST_CASE("a dataset is a corpus or a file, and else an error that says that both were tried") {
  const Sandbox sandbox;
  const fs::path file = write_bytes(sandbox.folder / "my.txt", "text");
  CHECK(resolve_dataset(file.string()) == file);
  CHECK_THAT(
      message_of([] { resolve_dataset("kjb"); }),
      Contains(
          "'kjb' is neither a corpus (kjv, tinyshakespeare, kjv-groups, kjv-groups-held-out) nor a file") &&
          Contains("'kjv'?"));
  CHECK_THAT(message_of([&] { resolve_dataset(sandbox.folder.path().string()); }),
             Contains("is a directory"));
}

TEST_CASE("the data folder follows TZOO_DATA_DIR, XDG_CACHE_HOME, HOME in this order") {
  const ScopedVariable home("HOME", "/h");
  {
    const ScopedVariable xdg("XDG_CACHE_HOME", "/x");
    {
      const ScopedVariable own("TZOO_DATA_DIR", "/o");
      CHECK(zoo::data_directory() == "/o");
    }
    const ScopedVariable own("TZOO_DATA_DIR", "");
    CHECK(zoo::data_directory() == "/x/tzoo");
  }
  const ScopedVariable own("TZOO_DATA_DIR", std::nullopt), xdg("XDG_CACHE_HOME", std::nullopt);
  CHECK(zoo::data_directory() == "/h/.cache/tzoo");
  const ScopedVariable no_home("HOME", std::nullopt);
  CHECK_THAT(message_of(zoo::data_directory), Contains("TZOO_DATA_DIR"));
}
