#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/support.h"
#include "tokenizer/pipeline/char_and_byte_tokenizers.h"
#include "tokenizer/text/byte_level.h"

using namespace zoo;
using test::Ids;

TEST_CASE("Byte ids are the values of the bytes") {
  const ByteTokenizer tokenizer;
  CHECK(tokenizer.vocab_size() == 256);
  CHECK(tokenizer.encode("A\u00E9\n") == Ids{65, 0xC3, 0xA9, 10});
  CHECK(tokenizer.encode(std::string(1, '\0')) == Ids{0});
  CHECK_FALSE(tokenizer.eos_id());
}

TEST_CASE("The byte tokenizer gives every difficult text back, also after saving") {
  const test::TemporaryDirectory directory;
  const ByteTokenizer tokenizer;
  tokenizer.save(directory.path());
  const auto loaded = load_tokenizer(directory.path());
  CHECK(loaded->kind() == "byte");
  for (const std::string& text : test::difficult_texts()) {
    CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
    CHECK(loaded->encode(text) == tokenizer.encode(text));
  }
}

TEST_CASE("The byte tokenizer decodes bytes that are no text, and encodes none") {
  const ByteTokenizer tokenizer;
  CHECK(tokenizer.decode(Ids{0xE4, 0xB8, 0x41, 0xFF}) == "\xE4\xB8\x41\xFF");
  CHECK(test::message_of([&] { tokenizer.encode("abc\xE4\xB8"); }) ==
        "invalid UTF-8 in the text at byte 3 (line 1)");
  CHECK(test::message_of([&] {
          tokenizer.decode(Ids{65, 256});
        }) == "token id 256 is outside the vocabulary: expected 0 to 255");
}

TEST_CASE("Bytes without a glyph map to U+0100 and on, the others to themselves") {
  // From GPT-2's encoder.py: bytes_to_unicode().
  CHECK(byte_level_character(' ') == U'Ġ');
  CHECK(byte_level_character('\n') == U'Ċ');
  CHECK(byte_level_character('!') == U'!');
  CHECK(byte_level_character('~') == U'~');
  CHECK(byte_level_character(0x7F) == 0x121);
  CHECK(byte_level_character(0xA0) == 0x142);
  CHECK(byte_level_character(0xA1) == 0xA1);
  CHECK(byte_level_character(0xAD) == 0x143);
  CHECK(byte_level_character(0xFF) == 0xFF);
}
