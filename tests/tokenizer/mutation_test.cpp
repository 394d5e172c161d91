// Damaged files: thousands of them, each either refused with an Error or good enough to work with. A crash,
// another exception or (under the sanitizers) a stray read fails the test.
#include <random>

#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/support.h"
#include "tokenizer/sentencepiece_tokenizer.h"
#include "tokenizer/stream_decoder.h"

using namespace zoo;

namespace {

std::string mutated(std::string bytes, std::mt19937& random) {
  const int changes = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < changes; ++i) {
    char& byte = bytes[random() % bytes.size()];
    byte = static_cast<char>(random() % 2 == 0 ? random()
                                               : static_cast<unsigned char>(byte) ^ (1u << random() % 8));
  }
  if (random() % 16 == 0) bytes.resize(random() % bytes.size());
  return bytes;
}

void use(const Tokenizer& tokenizer) {
  test::Ids all(static_cast<std::size_t>(tokenizer.vocab_size()));
  for (std::size_t id = 0; id < all.size(); ++id) all[id] = static_cast<TokenId>(id);
  tokenizer.decode(all);
  StreamDecoder decoder(tokenizer);
  for (const TokenId id : all) decoder.push(id);
  decoder.finish();
  tokenizer.decode(tokenizer.encode("the cat e\u0301 \uFB01 \u4E16\n"));
}

struct Outcome {
  int refused = 0, usable = 0;
};

Outcome load_mutations(const std::string& file, const std::string& bytes, int count) {
  const test::TemporaryDirectory directory;
  std::mt19937 random(2024);
  Outcome outcome;
  for (int i = 0; i < count; ++i) {
    test::write_bytes(directory / file, mutated(bytes, random));
    try {
      use(*load_tokenizer(directory.path()));
      ++outcome.usable;
    } catch (const Error&) {
      ++outcome.refused;
    }
  }
  return outcome;
}

}  // namespace

TEST_CASE("A tokenizer.json with random damage is refused or works") {
  const auto name = GENERATE(as<std::string>{}, "char", "byte");
  const auto bytes = test::read_bytes(test::golden(name) / "tokenizer.json");
  const Outcome outcome = load_mutations("tokenizer.json", bytes, 3000);
  CHECK(outcome.refused > 1000);
}

TEST_CASE("A sentencepiece model with random damage is refused or works") {
  const auto name = GENERATE(as<std::string>{}, "unigram/spiece.model", "bpe/tokenizer.model");
  const Outcome outcome = load_mutations("spiece.model", test::read_bytes(test::golden(name)), 2000);
  CHECK(outcome.refused > 100);
  CHECK(outcome.usable > 100);
}

TEST_CASE("A model with the library's large normalization table and random damage is refused or works") {
  SentencePieceOptions options;
  options.vocab_size = 10;
  const test::TemporaryDirectory directory;
  SentencePieceTokenizer::train("abab abab cdcd abcd", options).save(directory.path());
  const Outcome outcome = load_mutations("spiece.model", test::read_bytes(directory / "spiece.model"), 200);
  CHECK(outcome.refused > 10);
  CHECK(outcome.usable > 10);
}
