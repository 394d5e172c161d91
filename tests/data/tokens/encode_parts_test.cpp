#include "data/tokens/encode_parts.h"

#include <random>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json.h"
#include "tests/data/support.h"
#include "tests/support/temporary_directory.h"
#include "tokenizer/learning/subword_trainers.h"
#include "tokenizer/pipeline/char_and_byte_tokenizers.h"

using zoo::SplitPattern;
using zoo::TokenId;
using zoo::TokenIds;
using zoo::Tokenizer;
using zoo::test::TemporaryDirectory;

namespace {

// Words, numbers, contractions, marks, special tokens and runs of white space in random order.
std::string mixed_text(std::size_t size) {
  const std::vector<std::string> pieces{
      "the", "Words", "it's",      "I'LL",          "x_1",   "12345",         " ",       " ",
      " ",   "  ",    "\n",        "\r\n",          "\t ",   "\u00e9t\u00e9", "e\u0301", "\u4f60\u597d",
      "...", "!?",    "std::a<b>", "<|endoftext|>", "[MASK]"};
  std::mt19937 random(7);
  std::string text;
  while (text.size() < size) text += pieces[random() % pieces.size()];
  return text;
}

std::unique_ptr<Tokenizer> byte_bpe(SplitPattern pattern, const std::vector<std::string>& special_tokens) {
  const TemporaryDirectory folder;
  const zoo::BpeTrainerOptions options{
      .vocab_size = 400, .special_tokens = special_tokens, .pattern = pattern};
  save_bpe(train_bpe(mixed_text(20'000), options), options, folder.path());
  return zoo::load_tokenizer(folder.path());
}

std::unique_ptr<Tokenizer> wordpiece() {
  const TemporaryDirectory folder;
  const zoo::WordPieceTrainerOptions options{.vocab_size = 300};
  save_wordpiece(train_wordpiece(mixed_text(20'000), options), options, folder.path());
  return zoo::load_tokenizer(folder.path());
}

// Its special token takes the white space around it, too.
std::unique_ptr<Tokenizer> greedy_bpe() {
  const TemporaryDirectory folder;
  const zoo::BpeTrainerOptions options{.vocab_size = 400};
  save_bpe(train_bpe(mixed_text(20'000), options), options, folder.path());
  nlohmann::json json = zoo::read_json(folder / "tokenizer.json");
  json["added_tokens"][0]["lstrip"] = json["added_tokens"][0]["rstrip"] = true;
  zoo::write_json(folder / "tokenizer.json", json);
  return zoo::load_tokenizer(folder.path());
}

TokenIds joined(TokenIds first, const TokenIds& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TokenIds in_parts(std::string_view text, const Tokenizer& tokenizer, std::size_t threads) {
  TokenIds ids;
  std::size_t before = 0;
  zoo::encode_in_parts(text, zoo::TextEncoder::of(tokenizer), threads,
                       [&](std::span<const TokenId> more, std::size_t bytes) {
                         ids.insert(ids.end(), more.begin(), more.end());
                         CHECK(bytes > before);
                         before = bytes;
                       });
  CHECK(before == text.size());
  return ids;
}

std::vector<std::unique_ptr<Tokenizer>> divisible() {
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  for (const auto pattern :
       {SplitPattern::gpt2, SplitPattern::cl100k, SplitPattern::qwen2, SplitPattern::o200k})
    tokenizers.push_back(byte_bpe(pattern, {"<|endoftext|>"}));
  tokenizers.push_back(greedy_bpe());
  tokenizers.push_back(wordpiece());
  tokenizers.push_back(std::make_unique<zoo::ByteTokenizer>());
  tokenizers.push_back(std::make_unique<zoo::CharTokenizer>(zoo::CharTokenizer::train(mixed_text(20'000))));
  return tokenizers;
}

}  // namespace

TEST_CASE("The ids of both sides of every division are those of the text") {
  const std::string text = mixed_text(20'000);
  for (const auto& tokenizer : divisible()) {
    const TokenIds whole = tokenizer->encode(text);
    std::size_t divisions = 0;
    for (std::size_t at = tokenizer->division(text, 1); at < text.size();
         at = tokenizer->division(text, at + 1), ++divisions) {
      CAPTURE(tokenizer->kind(), at);
      REQUIRE(joined(tokenizer->encode(text.substr(0, at)), tokenizer->encode(text.substr(at))) == whole);
    }
    CHECK(divisions > 40);
  }
}

TEST_CASE("A text encoded in parts has the ids of the whole, on any number of threads") {
  const std::string text = mixed_text(3'000'000);
  for (const auto& tokenizer : divisible()) {
    const TokenIds whole = tokenizer->encode(text);
    for (const std::size_t threads : {1, 3, 0}) {
      CAPTURE(tokenizer->kind(), threads);
      REQUIRE(in_parts(text, *tokenizer, threads) == whole);
    }
  }
}

TEST_CASE("A tokenizer that knows of no division encodes a text in one part") {
  const std::string text = mixed_text(1'500'000);
  // This token may lie across any place between a letter and a space.
  const auto reaching = byte_bpe(SplitPattern::gpt2, {"<|endoftext|>", "the Words"});
  CHECK(reaching->division(text, 1) == text.size());
  CHECK(in_parts(text, *reaching, 3) == reaching->encode(text));
}

TEST_CASE("An error of the tokenizer or of who takes the ids ends encoding in parts") {
  const zoo::ByteTokenizer bytes;
  std::string text(6'000'000, 'a');
  std::size_t taken = 0;
  CHECK_THROWS_WITH(zoo::encode_in_parts(text, zoo::TextEncoder::of(bytes), 2,
                                         [&](std::span<const TokenId>, std::size_t) {
                                           if (++taken == 2) throw zoo::Error("the disk is full");
                                         }),
                    "the disk is full");
  CHECK(taken == 2);
  text[3'500'000] = '\xFF';
  CHECK_THROWS_AS(zoo::encode_in_parts(text, zoo::TextEncoder::of(bytes), 2,
                                       [](std::span<const TokenId>, std::size_t) {}),
                  zoo::Error);
}
