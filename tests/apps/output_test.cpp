#include "apps/command/output.h"

#include <sstream>

#include "apps/command/terminal.h"
#include "tests/support/catch.h"

using namespace zoo;

TEST_CASE("numbers are written with separators between thousands") {
  CHECK(with_separators(0) == "0");
  CHECK(with_separators(999) == "999");
  CHECK(with_separators(1000) == "1,000");
  CHECK(with_separators(124439808) == "124,439,808");
  CHECK(with_separators(-123456) == "-123,456");
}

TEST_CASE("counts and bytes are written in the unit that fits") {
  CHECK(human_count(124439808) == "124.4 M");
  CHECK(human_count(999) == "999");
  CHECK(human_count(1000) == "1.0 k");
  CHECK(human_count(999949) == "999.9 k");
  CHECK(human_count(999950) == "1.0 M");
  CHECK(human_count(174591683584) == "174.6 B");
  CHECK(human_bytes(497759232) == "497.8 MB");
  CHECK(human_bytes(12) == "12 B");
}

TEST_CASE("a table lines up text on the left and numbers on the right") {
  Table table({{"tensor"}, number("count"), {"dtype"}});
  table.row({"wte", "38597376", "F32"});
  table.row({"ln_f", "768"});
  std::ostringstream out;
  table.print(out);
  CHECK(out.str() ==
        "tensor     count  dtype\n"
        "wte     38597376  F32\n"
        "ln_f         768\n");
}

TEST_CASE("a table counts columns of the terminal, not bytes") {
  Table table({{""}, number("")});
  table.row({"né", "1"});
  table.row({"日本", "22"});
  std::ostringstream out;
  table.print(out);
  CHECK(out.str() == "né     1\n日本  22\n");
}

TEST_CASE("a table that is too wide wraps its texts") {
  Table table({{"name"}, {"what"}, number("n")});
  table.row({"kjv", "a description of the length of two lines", "10"});
  table.row({"names", "words", "7"});
  std::ostringstream out;
  table.print(out, 36);
  CHECK(out.str() ==
        "name   what                        n\n"
        "kjv    a description of the       10\n"
        "       length of two lines\n"
        "names  words                       7\n");
}

TEST_CASE("a table that is too wide wraps its headings first") {
  Table table({{"model"}, number("of the parameters"), {"what it is"}});
  table.row({"gpt2", "31.02%", "the embedding of tokens"});
  std::ostringstream out;
  table.print(out, 42);
  CHECK(out.str() ==
        "           of the\n"
        "model  parameters  what it is\n"
        "gpt2       31.02%  the embedding of tokens\n");
}

TEST_CASE("a table without room for its columns is paragraphs") {
  Table table({{"name"}, number("layers"), number("heads"), {"what"}});
  table.row({"gpt2-a-long-name", "12", "144", "causal decoder, pre-LayerNorm, tied"});
  table.row({"bert", "2", "", "encoder"});
  std::ostringstream out;
  table.print(out, 30);
  CHECK(out.str() ==
        "name gpt2-a-long-name\n"
        "    layers: 12, heads: 144,\n"
        "    what: causal decoder,\n"
        "    pre-LayerNorm, tied\n"
        "name bert\n"
        "    layers: 2, what: encoder\n");
}

TEST_CASE("text is wrapped at blanks, and a word that no line holds inside") {
  CHECK(wrapped_lines("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(wrapped_lines("a abcdefghij b", 4) == std::vector<std::string>{"a", "abcd", "efgh", "ij b"});
  CHECK(wrapped_lines("日本日本", 5) == std::vector<std::string>{"日本", "日本"});
  CHECK(wrapped_lines("日本", 1) == std::vector<std::string>{"日", "本"});
  CHECK(wrapped_lines("", 4) == std::vector<std::string>{""});
  CHECK(wrap("one two three", 9, 2) == "one two\n  three");
}

TEST_CASE("the width of a text is what a terminal shows") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("é") == 1);
  CHECK(display_width("e\u0301") == 1);
  CHECK(display_width("日本") == 4);
  CHECK(display_width("🙂") == 2);
  CHECK(display_width("a\xff") == 2);
  CHECK(fit("日本", 3) == "日");
  CHECK(fit("abc", 3) == "abc");
  CHECK(fit("abc", 0).empty());
}
