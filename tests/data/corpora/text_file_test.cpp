#include "data/corpora/text_file.h"

#include "tests/data/support.h"
#include "tests/support/temporary_directory.h"

using Catch::Contains;
using zoo::test::message_of;
using zoo::test::TemporaryDirectory;
using zoo::test::write_bytes;

TEST_CASE("read_text gives the text without a byte order mark") {
  const TemporaryDirectory folder;
  CHECK(zoo::read_text(write_bytes(folder / "a", "\xEF\xBB\xBFh\xC3\xA9\r\n")) == "h\xC3\xA9\r\n");
  CHECK(zoo::read_text(write_bytes(folder / "a", "x\xEF\xBB\xBFy")) == "x\xEF\xBB\xBFy");
}

TEST_CASE("read_text names file and line of what is not UTF-8") {
  const TemporaryDirectory folder;
  const auto path = write_bytes(folder / "poem.txt",
                                "one\ntw\xC3\xB6\nthr\xE9"
                                "e\n");
  CHECK_THAT(message_of([&] { zoo::read_text(path); }), Contains(path.string()) && Contains("line 3"));
  const auto utf16 = write_bytes(folder / "w.txt", std::string("\xFF\xFEh\0i\0", 6));
  CHECK_THAT(message_of([&] { zoo::read_text(utf16); }), Contains("w.txt") && Contains("iconv -f UTF-16"));
}

TEST_CASE("read_text refuses an empty file") {
  const TemporaryDirectory folder;
  CHECK_THAT(message_of([&] { zoo::read_text(write_bytes(folder / "e", "")); }),
             Contains("the file is empty"));
  CHECK_THAT(message_of([&] { zoo::read_text(write_bytes(folder / "b", "\xEF\xBB\xBF")); }),
             Contains("the file is empty"));
  CHECK_THAT(message_of([&] { zoo::read_text(folder / "none"); }),
             Contains("none") && Contains("No such file"));
}
