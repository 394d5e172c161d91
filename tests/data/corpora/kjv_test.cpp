#include "data/corpora/kjv.h"

#include <algorithm>

#include "data/corpora/corpora.h"
#include "data/corpora/sha256.h"
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
  // 31,102 verses, and for each of 1,189 chapters a heading and two empty lines, without the very first.
  CHECK(std::count(text.begin(), text.end(), '\n') == 31102 + 3 * 1189 - 1);
  CHECK(text.size() == 4153204);
  CHECK(zoo::sha256(text) == "83688d663d3ec6e207d4f5598f159ae6673aeee81afc8c111773e3fcb1bca1f1");
}

TEST_CASE("every verse is labelled with its group of books, and every tenth chapter held out") {
  using enum zoo::ChapterSet;
  std::string text, known = "text\tlabel\n";
  for (int chapter = 1; chapter <= 11; ++chapter) {
    const std::string verse = "Verse " + std::to_string(chapter) + ".";
    const bool second = chapter >= 6;  // Joshua 1 to 6
    text += (chapter > 1 ? "\n" : "") + std::string(second ? "Joshua " : "Genesis ") +
            std::to_string(second ? chapter - 5 : chapter) + "\n\n" + verse + "\n";
    if (chapter != 10) known += verse + (second ? "\thistory\n" : "\tlaw\n");
  }
  CHECK(zoo::label_kjv(text, kTraining) == known);
  CHECK(zoo::label_kjv(text, kHeldOut) == "text\tlabel\nVerse 10.\thistory\n");

  const std::string whole = zoo::extract_kjv(), train = zoo::label_kjv(whole, kTraining),
                    held_out = zoo::label_kjv(whole, kHeldOut);
  CHECK(std::count(train.begin(), train.end(), '\n') + std::count(held_out.begin(), held_out.end(), '\n') ==
        31102 + 2);
  for (const char* line :
       {"\nIn the beginning God created the heaven and the earth.\tlaw\n",
        "the son of Nun, Moses' minister, saying,\thistory\n",
        "that man was perfect and upright, and one that feared God, and eschewed evil.\tpoetry\n",
        "The word that Isaiah the son of Amoz saw concerning Judah and Jerusalem.\tprophets\n",
        "there came wise men from the east to Jerusalem,\tgospels\n",
        "of all that Jesus began both to do and teach,\tacts\n",
        "separated unto the gospel of God,\tletters\n",
        "\nThe grace of our Lord Jesus Christ be with you all. Amen.\trevelation\n"}) {
    INFO(line);
    CHECK(train.find(line) != std::string::npos);
  }
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
