#include "tokenizer/stream_decoder.h"

#include <random>

#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/support.h"
#include "tokenizer/pipeline/char_and_byte_tokenizers.h"
#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"
#include "tokenizer/text/utf8.h"

using namespace zoo;
using test::Ids;

namespace {

std::vector<std::string> pushes(const Tokenizer& tokenizer, const Ids& ids) {
  StreamDecoder decoder(tokenizer);
  std::vector<std::string> parts;
  for (const TokenId id : ids) parts.push_back(decoder.push(id));
  parts.push_back(decoder.finish());
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += part;
  return text;
}

Ids random_ids(std::mt19937& random, std::int64_t vocab_size, std::size_t count) {
  Ids ids(count);
  for (TokenId& id : ids) id = static_cast<TokenId>(random() % static_cast<std::uint32_t>(vocab_size));
  return ids;
}

/// Counts the decoded ids.
class CountingTokenizer final : public Tokenizer {
 public:
  explicit CountingTokenizer(const Tokenizer& inner) : inner_(inner) {}
  std::string_view kind() const override { return inner_.kind(); }
  std::int64_t vocab_size() const override { return inner_.vocab_size(); }
  Encoding tokenize(std::string_view text, const EncodeOptions&, bool) const override {
    return {.ids = inner_.encode(text)};
  }
  std::string text_of(std::span<const TokenId> ids, bool) const override {
    decoded += ids.size();
    return inner_.decode(ids);
  }
  void save(const std::filesystem::path&) const override {}
  mutable std::size_t decoded = 0;

 private:
  const Tokenizer& inner_;
};

}  // namespace

TEST_CASE("A character is shown when its last byte has come") {
  const ByteTokenizer tokenizer;
  CHECK(pushes(tokenizer, {'a', 0xE4, 0xB8, 0x96, 'b', 0xC3, 0xA9}) ==
        std::vector<std::string>{"a", "", "", "\u4E16", "b", "", "\u00E9", ""});
}

TEST_CASE("Bytes that never become a character are shown as U+FFFD") {
  const ByteTokenizer tokenizer;
  CHECK(pushes(tokenizer, {0xFF, 'a'}) == std::vector<std::string>{"\uFFFD", "a", ""});
  CHECK(pushes(tokenizer, {0xE4, 0xB8, 'a'}) == std::vector<std::string>{"", "", "\uFFFDa", ""});
  CHECK(pushes(tokenizer, {'a', 0xE4, 0xB8}) == std::vector<std::string>{"a", "", "", "\uFFFD"});
}

TEST_CASE("Every difficult text streams as it is") {
  const ByteTokenizer bytes;
  for (const std::string& text : test::difficult_texts()) {
    CHECK(joined(pushes(bytes, bytes.encode(text))) == text);
    if (text.empty()) continue;
    const CharTokenizer characters = CharTokenizer::train(text);
    CHECK(joined(pushes(characters, characters.encode(text))) == text);
  }
}

TEST_CASE("Random bytes stream to the text with U+FFFD for what is invalid") {
  const ByteTokenizer tokenizer;
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Ids ids = random_ids(random, 256, 60);
    // Mostly bytes that begin or continue a character, so that complete and incomplete ones occur.
    for (TokenId& id : ids)
      id = random() % 2 == 0 ? 0x80 + id % 64 : (random() % 2 == 0 ? 0xC0 + id % 64 : id);
    CHECK(joined(pushes(tokenizer, ids)) == replace_invalid_utf8(tokenizer.decode(ids)));
  }
}

TEST_CASE("Sentencepiece drops the space at the beginning of a text and no other") {
  const auto tokenizer = SentencePieceTokenizer::load(test::golden("unigram/spiece.model"));
  const Ids the = tokenizer.encode("the cat");
  CHECK(tokenizer.token_text(the[0]) + tokenizer.token_text(the[1]) == "\u2581the");
  CHECK(pushes(tokenizer, {the[0], the[1], the[0], the[1]}) ==
        std::vector<std::string>{"", "the", " ", "the", ""});
}

TEST_CASE("Control tokens show nothing and do not make a new beginning") {
  const auto tokenizer = SentencePieceTokenizer::load(test::golden("bpe/tokenizer.model"));
  const TokenId bos = 1, eos = 2;
  const Ids word = tokenizer.encode("the");
  REQUIRE(word.size() == 1);
  const TokenId the = word[0];
  CHECK(pushes(tokenizer, {bos, bos, the, eos, the, bos, bos, the}) ==
        std::vector<std::string>{"", "", "the", "", " the", "", "", " the", ""});
}

TEST_CASE("A character of byte tokens between pieces is shown whole") {
  const auto tokenizer = SentencePieceTokenizer::load(test::golden("bpe/tokenizer.model"));
  const auto byte = [](int value) {
    return static_cast<TokenId>(value + 4);
  };  // after <unk> <s> </s> and "\n"
  REQUIRE(tokenizer.token_text(byte(0xE4)) == "<0xE4>");
  const TokenId the = tokenizer.encode("the")[0];
  CHECK(pushes(tokenizer, {the, byte(0xE4), byte(0xB8), byte(0x96), the}) ==
        std::vector<std::string>{"the", "", "", "\u4E16", " the", ""});
  CHECK(pushes(tokenizer, {byte(0xE4), byte(0xB8)}) == std::vector<std::string>{"", "", "\uFFFD\uFFFD"});
}

TEST_CASE("Characters of several byte tokens in a row stream as they are") {
  const test::TemporaryDirectory folder;
  test::write_bytes(folder / "tokenizer.json", test::llama_tokenizer_json());
  const auto tokenizer = load_tokenizer(folder.path());
  for (const std::string text :
       {"a\n\U0001F600 b\u00E9", "\U0001F600\U0001F600ab", "\u4E16\n\u00E9\U0001F600"}) {
    REQUIRE(tokenizer->decode(tokenizer->encode(text)) == text);
    CHECK(joined(pushes(*tokenizer, tokenizer->encode(text))) == text);
  }
}

TEST_CASE("Random ids of a sentencepiece model stream to what the library decodes at once") {
  const auto name = GENERATE(as<std::string>{}, "unigram/spiece.model", "bpe/tokenizer.model");
  const auto tokenizer = SentencePieceTokenizer::load(test::golden(name));
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    Ids ids = random_ids(random, tokenizer.vocab_size(), 1 + random() % 12);
    for (TokenId& id : ids) {
      // Spaces and control tokens, at the beginning and elsewhere.
      if (random() % 4 == 0) id = tokenizer.encode("the ")[0];
      if (random() % 6 == 0) id = static_cast<TokenId>(random() % 3);
    }
    const auto parts = pushes(tokenizer, ids);
    INFO(name << " " << Catch::Detail::stringify(ids));
    CHECK(joined(parts) == tokenizer.decode(ids));
    for (const std::string& part : parts) CHECK_FALSE(invalid_utf8_at(part));
  }
}

TEST_CASE("A stream that shows nothing, or no character, does not grow") {
  const auto bpe = SentencePieceTokenizer::load(test::golden("bpe/tokenizer.model"));
  const ByteTokenizer bytes;
  const auto decoded_for = [](const Tokenizer& inner, TokenId id) {
    const CountingTokenizer tokenizer(inner);
    StreamDecoder decoder(tokenizer);
    for (int i = 0; i < 5000; ++i) decoder.push(id);
    return tokenizer.decoded;
  };
  constexpr std::size_t kPerToken = 40;
  CHECK(decoded_for(bytes, 'a') <= kPerToken * 5000);
  CHECK(decoded_for(bytes, 0xE4) <= kPerToken * 5000);
  CHECK(decoded_for(bpe, 2) <= kPerToken * 5000);         // </s>
  CHECK(decoded_for(bpe, 4 + 0x80) <= kPerToken * 5000);  // a byte that begins no character
  CHECK(decoded_for(bpe, bpe.encode(" ")[0]) <= kPerToken * 5000);
}

TEST_CASE("A wrong id is an error, and the decoder goes on as if it had not been pushed") {
  const ByteTokenizer tokenizer;
  StreamDecoder decoder(tokenizer);
  CHECK(decoder.push(0xC3).empty());
  CHECK_THROWS_AS(decoder.push(256), Error);
  CHECK(decoder.push(0xA9) == "\u00E9");
  CHECK(decoder.finish().empty());
  CHECK(decoder.push('a') == "a");
}
