#include "tokenizer/text/utf8.h"

#include "tests/tokenizer/support.h"

using namespace zoo;

TEST_CASE("The first and the last sequence of every length and range is UTF-8") {
  const auto text = GENERATE(as<std::string>{},  //
                             "\x01", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xE0\xBF\xBF",
                             "\xE1\x80\x80", "\xEC\xBF\xBF", "\xED\x80\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                             "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF0\xBF\xBF\xBF", "\xF1\x80\x80\x80",
                             "\xF3\xBF\xBF\xBF", "\xF4\x80\x80\x80", "\xF4\x8F\xBF\xBF");
  CHECK_FALSE(invalid_utf8_at(text));
  CHECK_FALSE(invalid_utf8_at("12345678" + text + "12345678"));
}

TEST_CASE("Overlong forms, surrogates, values above U+10FFFF and stray bytes are not UTF-8") {
  const auto fault = GENERATE(
      as<std::string>{},  //
      "\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
      "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE", "\xFF", "\xC2",
      "\xC2\x41", "\xE1\x80", "\xE1\x80\x41", "\xF1\x80\x80", "\xF1\x80\x80\x41", "\xF1\x80\xC2\x80");
  // At every offset from the stride of eight ASCII bytes.
  for (std::size_t before = 0; before < 20; ++before) {
    CHECK(invalid_utf8_at(std::string(before, 'a') + fault + "bcdefghijklmnop") == before);
    CHECK(invalid_utf8_at(std::string(before, 'a') + fault) == before);
  }
}

TEST_CASE("An invalid text is named with its byte and line") {
  CHECK_NOTHROW(require_utf8("in order \xC3\xA9", "a"));
  CHECK(test::message_of([] { require_utf8("one\ntwo\nth\xFFree", "corpus.txt"); }) ==
        "invalid UTF-8 in corpus.txt at byte 10 (line 3)");
  CHECK(test::message_of([] { require_utf8("\xC3", "x"); }) == "invalid UTF-8 in x at byte 0 (line 1)");
}

TEST_CASE("Code points are read in order and written back") {
  const std::string text = "A\u00E9\u4E16\U0001F600\u07FF\u0800\uFFFF\U00010000";
  const std::u32string expected = U"A\u00E9\u4E16\U0001F600\u07FF\u0800\uFFFF\U00010000";
  std::u32string found;
  std::string written;
  for (std::size_t at = 0; at < text.size();) {
    found += next_code_point(text, at);
    append_utf8(written, found.back());
  }
  CHECK(found == expected);
  CHECK(written == text);
}

TEST_CASE("A character is described by itself and its number, a control character by its number") {
  CHECK(describe_character(0xE9) == "'\u00E9' (U+00E9)");
  CHECK(describe_character(0x1F600) == "'\U0001F600' (U+1F600)");
  CHECK(describe_character('\n') == "U+000A");
  CHECK(describe_character(0x85) == "U+0085");
}

TEST_CASE("The tail of a text is incomplete only while a character can still come of it") {
  CHECK(incomplete_utf8_tail("") == 0);
  CHECK(incomplete_utf8_tail("abc") == 0);
  CHECK(incomplete_utf8_tail("abc\xC3") == 1);
  CHECK(incomplete_utf8_tail("abc\xE4\xB8") == 2);
  CHECK(incomplete_utf8_tail("\xF0\x9F\x98") == 3);
  CHECK(incomplete_utf8_tail("\xF0\x9F\x98\x80") == 0);
  CHECK(incomplete_utf8_tail("\xE4\xB8\x96") == 0);
  CHECK(incomplete_utf8_tail("a\x80") == 0);     // nothing precedes that it could continue
  CHECK(incomplete_utf8_tail("\xE0\x80") == 0);  // an overlong form
  CHECK(incomplete_utf8_tail("\xFF") == 0);
  CHECK(incomplete_utf8_tail("\x80\x80\x80\x80") == 0);
}

TEST_CASE("An excerpt has whole characters and says that it is not all") {
  CHECK(excerpt("añb", 4) == "añb");
  CHECK(excerpt("añb", 3) == "añ…");
  CHECK(excerpt("añb", 2) == "a…");
  CHECK(excerpt("", 0).empty());
}

TEST_CASE("Invalid sequences are replaced as in Python's errors=replace") {
  // The last example of section 3.9 of the Unicode standard (U+FFFD substitution of maximal subparts).
  CHECK(replace_invalid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41") == "\uFFFD\uFFFD\uFFFD\uFFFD\x41");
  CHECK(replace_invalid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41") ==
        "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\x41");
  CHECK(replace_invalid_utf8("ok \u4E16") == "ok \u4E16");
}
