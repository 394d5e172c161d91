#include <nlohmann/json.hpp>
#include <sentencepiece_processor.h>

#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/support.h"
#include "tokenizer/constraint/token_automaton.h"
#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"

using namespace zoo;
using test::Ids;

TEST_CASE("Ids and text are those of the library itself") {
  const auto name = GENERATE(as<std::string>{}, "unigram/spiece.model", "bpe/tokenizer.model");
  sentencepiece::SentencePieceProcessor library;
  REQUIRE(library.Load(test::golden(name).string()).ok());
  const auto tokenizer = SentencePieceTokenizer::load(test::golden(name));
  CHECK(tokenizer.vocab_size() == library.GetPieceSize());
  for (const std::string& text : test::difficult_texts()) {
    CHECK(tokenizer.encode(text) == library.EncodeAsIds(text));
    CHECK(tokenizer.decode(tokenizer.encode(text)) == library.DecodeIds(library.EncodeAsIds(text)));
  }
}

TEST_CASE("A model with byte tokens and without normalization gives every difficult text back") {
  const auto tokenizer = SentencePieceTokenizer::load(test::golden("bpe/tokenizer.model"));
  for (const std::string& text : test::difficult_texts())
    CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
}

TEST_CASE("A byte token writes its byte") {
  const auto tokenizer = SentencePieceTokenizer::load(test::golden("bpe/tokenizer.model"));
  const std::vector<std::string> bytes = token_bytes(tokenizer);
  int found = 0;
  for (std::size_t id = 0; id < bytes.size(); ++id) {
    const std::string piece = tokenizer.token_text(static_cast<TokenId>(id));
    if (piece == "<0xC3>") CHECK(bytes[id] == "\xC3");
    if (piece == "<0xA9>") CHECK(bytes[id] == "\xA9");
    if (piece == "<0x41>") CHECK(bytes[id] == "A");
    found += piece.starts_with("<0x") ? 1 : 0;
  }
  CHECK(found == 256);
}

TEST_CASE("The end token is the model's") {
  CHECK(SentencePieceTokenizer::load(test::golden("unigram/spiece.model")).eos_id() == 1);
  CHECK(SentencePieceTokenizer::load(test::golden("bpe/tokenizer.model")).eos_id() == 2);
}

TEST_CASE("Text that is not UTF-8 and ids outside the vocabulary are errors") {
  const auto tokenizer = SentencePieceTokenizer::load(test::golden("unigram/spiece.model"));
  CHECK(test::message_of([&] { tokenizer.encode("a\n\xFF"); }) ==
        "invalid UTF-8 in the text at byte 2 (line 2)");
  CHECK(test::message_of([&] {
          tokenizer.decode(Ids{3, 75});
        }) == "token id 75 is outside the vocabulary: expected 0 to 74");
  CHECK_THROWS_AS(tokenizer.decode(Ids{-1}), Error);
  CHECK_THROWS_AS(tokenizer.token_text(75), Error);
}

TEST_CASE("The T5 configuration is written for a model that T5Tokenizer would read alike, and for no other") {
  const test::TemporaryDirectory directory;
  const auto has_config = [&](const SentencePieceTokenizer& tokenizer, const std::string& name) {
    std::filesystem::create_directory(directory / name);
    tokenizer.save(directory / name);
    return std::filesystem::exists(directory / name / "tokenizer_config.json");
  };
  CHECK_FALSE(has_config(SentencePieceTokenizer::load(test::golden("bpe/tokenizer.model")), "bpe"));
  CHECK_FALSE(has_config(SentencePieceTokenizer::load(test::golden("unigram/spiece.model")), "own-rules"));
  SentencePieceOptions options;
  options.vocab_size = 10;
  REQUIRE(has_config(SentencePieceTokenizer::train("abab abab cdcd abcd", options), "t5"));
  const auto config = nlohmann::json::parse(test::read_bytes(directory / "t5" / "tokenizer_config.json"));
  CHECK(config == nlohmann::json{{"tokenizer_class", "T5Tokenizer"},
                                 {"extra_ids", 0},
                                 {"clean_up_tokenization_spaces", false},
                                 {"pad_token", "<pad>"},
                                 {"eos_token", "</s>"},
                                 {"unk_token", "<unk>"}});
}
