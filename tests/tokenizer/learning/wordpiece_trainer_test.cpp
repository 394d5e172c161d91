#include <nlohmann/json.hpp>

#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/support.h"
#include "tokenizer/learning/subword_trainers.h"

using namespace zoo;
using nlohmann::json;
using test::message_of;

namespace {

using Pieces = std::vector<std::string>;

/// The tokens after the five special ones.
Pieces learn_pieces(std::string_view text, WordPieceTrainerOptions options = {}) {
  const Pieces tokens = train_wordpiece(text, options);
  REQUIRE(Pieces(tokens.begin(), tokens.begin() + 5) == Pieces{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"});
  return {tokens.begin() + 5, tokens.end()};
}

}  // namespace

TEST_CASE("WordPiece learns from words as BERT cuts and normalises them") {
  // Words: ab (3 times, once with an accent), "!" and an ideograph, each by itself.
  CHECK(learn_pieces("Ab \xC3\x81"
                     "B!\nab\u4E2Dc") == Pieces{"!", "a", "b", "c", "\u4E2D", "##b", "ab"});
  CHECK(learn_pieces("Ab ab", {.normalizer = {.lowercase = false}}) == Pieces{"A", "a", "b", "##b"});
}

TEST_CASE("WordPiece merges pairs inside a word under one prefix") {
  // ##b ##c occurs 6 times, a ##bc 4 and x ##bc 2.
  CHECK(learn_pieces("abc abc abc abc xbc xbc") ==
        Pieces{"a", "b", "c", "x", "##b", "##c", "##bc", "abc", "xbc"});
}

TEST_CASE("WordPiece keeps the most frequent characters, at most as many as it may") {
  CHECK(learn_pieces("aab", {.limit_alphabet = 1}) == Pieces{"a", "##a"});
}

TEST_CASE("WordPiece needs its special tokens and room for the characters") {
  CHECK(message_of([] {
          train_wordpiece("a", {.special_tokens = {"[UNK]", "[CLS]"}});
        }) == "the special tokens of a WordPiece vocabulary lack [SEP]");
  CHECK(message_of([] { train_wordpiece("ab", {.vocab_size = 7}); }) ==
        "vocab_size 7 has no room for the 5 special tokens and 2 characters: expected 8 or more");
  CHECK(message_of([] { train_wordpiece("a\n\xC3", {}); }) ==
        "invalid UTF-8 in the training text at byte 2 (line 2)");
}

TEST_CASE("The files of WordPiece say the same to all that read them") {
  const test::TemporaryDirectory directory;
  const WordPieceTrainerOptions options{.normalizer = {.lowercase = false}};
  save_wordpiece(train_wordpiece("ab ab", options), options, directory.path());
  CHECK(test::read_bytes(directory / "vocab.txt") == "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##b\nab\n");
  const json tokenizer = json::parse(test::read_bytes(directory / "tokenizer.json"));
  CHECK(tokenizer.at("model").at("vocab").at("ab") == 8);
  CHECK(tokenizer.at("model").at("vocab").size() == 9);
  CHECK(tokenizer.at("normalizer").at("lowercase") == false);
  CHECK(tokenizer.at("added_tokens").size() == 5);
  CHECK(tokenizer.at("post_processor").at("special_tokens").at("[SEP]").at("ids") == json::array({3}));
  const json config = json::parse(test::read_bytes(directory / "tokenizer_config.json"));
  CHECK(config.at("do_lower_case") == false);
  CHECK(config.at("mask_token") == "[MASK]");
}
