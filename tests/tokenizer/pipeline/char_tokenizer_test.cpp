#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/support.h"
#include "tokenizer/pipeline/char_and_byte_tokenizers.h"

using namespace zoo;
using test::Ids;

TEST_CASE("Characters get ids in sorted order, as in nanoGPT") {
  const CharTokenizer tokenizer = CharTokenizer::train("hello, w\u00F6rld!\n\U0001F600\uFFFD\u4E16");
  // sorted(set(text)) in Python: by code point, so U+1F600 comes after U+FFFD.
  const std::u32string sorted = U"\n !,dehlorw\u00F6\u4E16\uFFFD\U0001F600";
  CHECK(std::u32string(tokenizer.characters().begin(), tokenizer.characters().end()) == sorted);
  CHECK(tokenizer.vocab_size() == 15);
  CHECK(tokenizer.encode("hello\n\u4E16\U0001F600") == Ids{6, 5, 7, 7, 8, 0, 12, 14});
  CHECK(tokenizer.decode(Ids{12, 0, 6, 8}) == "\u4E16\nho");
  CHECK(tokenizer.kind() == "char");
  CHECK_FALSE(tokenizer.eos_id());
}

TEST_CASE("The char tokenizer gives every difficult text back, also after saving") {
  const test::TemporaryDirectory directory;
  std::string all;
  for (const std::string& text : test::difficult_texts()) all += text;
  const CharTokenizer trained = CharTokenizer::train(all);
  trained.save(directory.path());
  const auto loaded = load_tokenizer(directory.path());
  CHECK(loaded->kind() == "char");
  CHECK(loaded->vocab_size() == trained.vocab_size());
  for (const std::string& text : test::difficult_texts()) {
    const Ids ids = trained.encode(text);
    CHECK(trained.decode(ids) == text);
    CHECK(loaded->encode(text) == ids);
    CHECK(loaded->decode(ids) == text);
  }
}

TEST_CASE("An unknown character is named with its number, byte and line") {
  const CharTokenizer tokenizer = CharTokenizer::train("abc\n");
  CHECK(test::message_of([&] { tokenizer.encode("ab\nc\u00E9"); }) ==
        "the character '\u00E9' (U+00E9) at byte 4 (line 2) is not in the vocabulary of 4 characters");
  CHECK(test::message_of([&] { tokenizer.encode("\t"); }) ==
        "the character U+0009 at byte 0 (line 1) is not in the vocabulary of 4 characters");
  // In a page of the table with other characters, and in an empty page.
  const CharTokenizer wide = CharTokenizer::train("\u4E16");
  CHECK_THROWS_AS(wide.encode("\u4E17"), Error);
  CHECK_THROWS_AS(wide.encode("\U0010FFFF"), Error);
}

TEST_CASE("The char tokenizer refuses invalid UTF-8, an empty text and unknown ids") {
  const CharTokenizer tokenizer = CharTokenizer::train("abc");
  CHECK(test::message_of([&] { tokenizer.encode("ab\xFF"); }) ==
        "invalid UTF-8 in the text at byte 2 (line 1)");
  CHECK(test::message_of([] { CharTokenizer::train("a\n\xC0\x80"); }) ==
        "invalid UTF-8 in the training text at byte 2 (line 2)");
  CHECK(test::message_of([] { CharTokenizer::train(""); }) ==
        "cannot train a char tokenizer: the training text is empty");
  CHECK(test::message_of([&] {
          tokenizer.decode(Ids{0, 3});
        }) == "token id 3 is outside the vocabulary: expected 0 to 2");
  CHECK_THROWS_AS(tokenizer.decode(Ids{-1}), Error);
}

TEST_CASE("A char tokenizer is not made of surrogates or of a character twice") {
  CHECK_THROWS_AS(CharTokenizer({U'a', 0xD800}), Error);
  CHECK_THROWS_AS(CharTokenizer({0x110000}), Error);
  CHECK(test::message_of([] {
          CharTokenizer({U'b', U'a', U'b'});
        }) == "the character 'b' (U+0062) has two ids, 0 and 2");
}
