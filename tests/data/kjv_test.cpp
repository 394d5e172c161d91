#include "data/kjv.h"

#include <algorithm>

#include "data/corpora.h"
#include "data/sha256.h"
#include "tests/data/support.h"
#include "tests/support/temporary_directory.h"

using Catch::Contains;
using zoo::test::ScopedVariable;

TEST_CASE("lay_out_kjv turns bible's pretty printing into reading text") {
  CHECK(zoo::lay_out_kjv(
            "\n1 John 2\n\n  1 My little  children.\n 10 He that loveth. \n\nJude 1\n\n  1 Jude,\n") ==
        "1 John 2\n\nMy little children.\nHe that loveth.\n\nJude 1\n\nJude,\n");
}

TEST_CASE("the King James text is whole and in order") {
  const std::string text = zoo::extract_kjv();
  CHECK(text.starts_with(
      "Genesis 1\n\nIn the beginning God created the heaven and the earth.\nAnd the earth was"));
  CHECK(text.ends_with("\nThe grace of our Lord Jesus Christ be with you all. Amen.\n"));
  CHECK_THAT(text,
             Contains("of hosts, that it shall leave them neither root nor branch.\n"));  // no line is broken
  // 31,102 verses, and for each of 1,189 chapters a heading and two empty lines, the first of which is left
  // out.
  CHECK(std::count(text.begin(), text.end(), '\n') == 31102 + 3 * 1189 - 1);
  CHECK(text.size() == 4153204);
  CHECK(zoo::sha256(text) == "83688d663d3ec6e207d4f5598f159ae6673aeee81afc8c111773e3fcb1bca1f1");
}

TEST_CASE("the King James text does not depend on terminal, locale, home or current folder") {
  const std::string expected = zoo::sha256(zoo::extract_kjv());
  const zoo::test::TemporaryDirectory folder;
  zoo::test::write_bytes(folder / "bible.data", "not the text");
  const ScopedVariable columns("COLUMNS", "20"), locale("LC_ALL", "C.UTF-8"), home("HOME", std::nullopt);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const std::string found = zoo::sha256(zoo::extract_kjv());
  std::filesystem::current_path(before);
  CHECK(found == expected);
}

TEST_CASE("without bible-kjv the error says how to install it") {
  const zoo::test::TemporaryDirectory folder;
  const ScopedVariable path("PATH", folder.path().string());
  CHECK_THAT(zoo::test::message_of(zoo::extract_kjv), Contains("apt-get install bible-kjv"));
  zoo::test::write_program(folder / "bible", "echo Cannot open data file bible.data >&2; exit 255");
  CHECK_THAT(zoo::test::message_of(zoo::extract_kjv),
             Contains("Cannot open data file bible.data") && Contains("apt-get install bible-kjv"));
}
