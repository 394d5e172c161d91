#include <chrono>
#include <map>
#include <random>

#include "tests/tokenizer/support.h"
#include "tokenizer/pipeline/bpe_model.h"
#include "tokenizer/pipeline/byte_trie.h"
#include "tokenizer/pipeline/unigram_model.h"
#include "tokenizer/pipeline/word_piece_model.h"

using namespace zoo;

namespace {

struct Result {
  test::Ids ids;
  std::vector<ByteRange> ranges;
};

Result encode(const TokenModel& model, std::string_view word) {
  Result result;
  model.encode(word, result.ids, &result.ranges);
  test::Ids alone;
  model.encode(word, alone, nullptr);
  CHECK(alone == result.ids);
  return result;
}

}  // namespace

TEST_CASE("A trie finds its entries and nothing else") {
  std::mt19937 random(5);
  std::map<std::string, TokenId> expected;
  const auto word = [&random] {
    std::string text(1 + random() % 4, 'a');
    for (char& c : text) c = static_cast<char>(random() % 3 == 0 ? 0xC3 : 'a' + random() % 4);
    return text;
  };
  std::vector<std::string> texts;
  for (int i = 0; i < 300; ++i) texts.push_back(word());
  std::vector<ByteTrie::Entry> entries;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    entries.push_back({texts[i], static_cast<TokenId>(i)});
    expected[texts[i]] = static_cast<TokenId>(i);
  }
  const ByteTrie trie(entries);
  for (int i = 0; i < 3000; ++i) {
    const std::string text = word();
    const auto found = expected.find(text);
    CHECK(trie.find(text) == (found == expected.end() ? std::nullopt : std::optional(found->second)));
  }
  CHECK_FALSE(trie.find(""));
  CHECK_FALSE(ByteTrie().find("a"));
}

TEST_CASE("A trie of one very long entry is made in time linear in its length") {
  const std::string text(3'000'000, 'a');
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<ByteTrie::Entry> entries{{text, 1}, {std::string_view(text).substr(0, 1000), 2}};
  const ByteTrie trie(entries);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
  CHECK(trie.find(text) == std::optional<TokenId>(1));
  CHECK(trie.find(text.substr(0, 1000)) == std::optional<TokenId>(2));
  CHECK_FALSE(trie.find(text.substr(0, 1001)));
}

TEST_CASE("WordPiece takes the longest piece at each place") {
  // BERT's own example: unaffable -> un ##aff ##able
  const std::vector<VocabularyEntry> vocabulary = {{"[UNK]", 0}, {"un", 1},  {"##aff", 2}, {"##able", 3},
                                                   {"##a", 4},   {"aff", 5}, {"##", 6},    {"é", 7},
                                                   {"##é", 8},   {"una", 9}};
  const WordPieceModel model(vocabulary, {});
  CHECK(encode(model, "unaffable").ids == test::Ids{0});  // una is the longest match, and ##ffable is missing
  CHECK(encode(model, "affable").ids == test::Ids{5, 3});
  const Result result = encode(model, "unéa");
  CHECK(result.ids == test::Ids{1, 8, 4});
  CHECK(result.ranges == std::vector<ByteRange>{{0, 2}, {2, 4}, {4, 5}});
  // A single missing piece makes the whole word unknown.
  CHECK(encode(model, "affx").ids == test::Ids{0});
  CHECK(encode(model, "affx").ranges == std::vector<ByteRange>{{0, 4}});
}

TEST_CASE("A word of too many characters is unknown") {
  const std::vector<VocabularyEntry> vocabulary = {{"?", 0}, {"é", 1}, {"##é", 2}};
  const WordPieceModel model(vocabulary, {.unk_token = "?", .max_input_chars_per_word = 3});
  CHECK(encode(model, "ééé").ids == test::Ids{1, 2, 2});
  CHECK(encode(model, "éééé").ids == test::Ids{0});
  const WordPieceModel without({{"a", 0}}, {});
  CHECK(test::message_of([&] { encode(without, "b"); }) ==
        "the word 'b' cannot be built from the vocabulary, which has no [UNK]");
}

TEST_CASE("A unigram model takes the most probable way") {
  // ab + c = -3 against a + bc = -2.5 against a + b + c = -6
  const std::vector<UnigramPiece> pieces = {{"<unk>", 0}, {"a", -1},  {"b", -3},
                                            {"c", -2},    {"ab", -1}, {"bc", -1.5}};
  const UnigramModel model(pieces, {.unk_id = 0});
  CHECK(encode(model, "abc").ids == test::Ids{1, 5});
  CHECK(encode(model, "ab").ids == test::Ids{4});
  // Among equal segmentations the one with the longest last piece: ab + ab, not a + b…
  CHECK(encode(model, "abab").ids == test::Ids{4, 4});
}

TEST_CASE("Unknown characters of a unigram model are one token, or bytes") {
  std::vector<UnigramPiece> pieces = {{"<unk>", 0}, {"a", -1}};
  const UnigramModel plain(pieces, {.unk_id = 0});
  const Result result = encode(plain, "aéxa");
  CHECK(result.ids == test::Ids{1, 0, 1});
  CHECK(result.ranges == std::vector<ByteRange>{{0, 1}, {1, 4}, {4, 5}});

  pieces.push_back({"<0xC3>", -5});
  pieces.push_back({"<0xA9>", -5});
  const UnigramModel bytes(pieces, {.unk_id = 0, .byte_fallback = true});
  CHECK(encode(bytes, "aé").ids == test::Ids{1, 2, 3});
  CHECK(encode(bytes, "aé").ranges == std::vector<ByteRange>{{0, 1}, {1, 3}, {1, 3}});
  CHECK(encode(bytes, "aéx").ids == test::Ids{1, 0});  // x has no byte token, so the run is unknown
  CHECK_THAT(test::message_of([&] { encode(UnigramModel(pieces, {}), "x"); }),
             Catch::Contains("'x' (U+0078) is not in the vocabulary"));
  CHECK_THAT(test::message_of([&] { UnigramModel(pieces, {.unk_id = 4}); }), Catch::Contains("unk_id is 4"));
}

TEST_CASE("Bytes that byte fallback makes of a prefix lie inside the word") {
  // "xx" is x and then ax; the a of ax is not in the word.
  const BpeModel model({{"<0x61>", 0}, {"<0x78>", 1}}, {},
                       {.byte_fallback = true, .continuing_subword_prefix = "a"});
  const Result result = encode(model, "xx");
  CHECK(result.ids == test::Ids{1, 0, 1});
  CHECK(result.ranges == std::vector<ByteRange>{{0, 1}, {1, 2}, {2, 2}});
}
