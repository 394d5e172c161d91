// Thousands of damaged files: each is refused with an Error or loads and works. A crash, another exception or
// (under the sanitizers) an invalid read fails the test.
#include <random>

#include <nlohmann/json.hpp>

#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/support.h"
#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"
#include "tokenizer/stream_decoder.h"

using namespace zoo;
using nlohmann::json;

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

namespace {

constexpr int kDamages = 250;

/// Replaces the value of one setting in a JSON file; the vocabulary stays.
std::string with_value_exchanged(std::string bytes, std::mt19937& random) {
  static const std::vector<json> kValues = {nullptr,        0,       -1,  7,          1e99,     true,
                                            false,          "",      "a", "Sequence", "\u2581", json::array(),
                                            json::object(), {1, "a"}};
  json root = json::parse(bytes);
  json* here = &root;
  while (here->is_structured() && !here->empty() && (here == &root || random() % 5 != 0)) {
    std::vector<json*> inside;
    for (auto& [key, value] : here->items()) {
      if (key != "vocab" && key != "merges") inside.push_back(&value);
    }
    if (inside.empty()) break;
    here = inside[random() % inside.size()];
  }
  *here = kValues[random() % kValues.size()];
  return root.dump();
}

std::filesystem::path pipeline_golden(const std::string& name) {
  return std::filesystem::path(ZOO_SOURCE_DIR) / "tests" / "golden" / "tokenizer_pipelines" / name;
}

/// Loads a folder with one file damaged in many ways.
Outcome load_damaged_folder(const std::string& name, const std::string& damaged,
                            std::string (*damage)(std::string, std::mt19937&)) {
  const test::TemporaryDirectory directory;
  for (const auto& entry : std::filesystem::directory_iterator(pipeline_golden(name))) {
    if (entry.path().filename() != "expected.jsonl") std::filesystem::copy(entry.path(), directory.path());
  }
  const std::string bytes = test::read_bytes(pipeline_golden(name) / damaged);
  std::mt19937 random(7);
  Outcome outcome;
  for (int i = 0; i < kDamages; ++i) {
    test::write_bytes(directory / damaged, damage(bytes, random));
    try {
      const auto tokenizer = load_tokenizer(directory.path());
      const std::string text = "the cat e\u0301 \uFB01 \u4E16 <s>[MASK]\n";
      const Encoding encoding = tokenizer->encode(text, EncodeOptions{});
      for (const ByteRange range : encoding.offsets) {
        REQUIRE(range.begin <= range.end);
        REQUIRE(range.end <= text.size());
      }
      tokenizer->decode_with_special_tokens(encoding.ids);
      use(*tokenizer);
      ++outcome.usable;
    } catch (const Error&) {
      ++outcome.refused;
    }
  }
  return outcome;
}

}  // namespace

TEST_CASE("A tokenizer.json of any kind with random damage is refused or works") {
  const auto name =
      GENERATE(as<std::string>{}, "wordpiece_added_tokens", "byte_bpe_splits", "byte_bpe_llama3",
               "unigram_t5", "unigram_normalized", "bpe_llama2", "bpe_suffix", "word_level");
  const Outcome outcome = load_damaged_folder(name, "tokenizer.json", mutated);
  CHECK(outcome.refused > 100);
}

TEST_CASE("A tokenizer.json with a value in the place of another is refused or works") {
  const auto name =
      GENERATE(as<std::string>{}, "wordpiece_added_tokens", "byte_bpe_splits", "byte_bpe_llama3",
               "unigram_t5", "unigram_normalized", "bpe_llama2", "bpe_suffix", "word_level");
  const Outcome outcome = load_damaged_folder(name, "tokenizer.json", with_value_exchanged);
  CHECK(outcome.refused > 20);
  CHECK(outcome.usable > 20);
}

TEST_CASE("Vocabulary and settings files with random damage are refused or work") {
  const auto [name, damaged] =
      GENERATE(table<std::string, std::string>({{"classic_bert", "vocab.txt"},
                                                {"classic_bert", "tokenizer_config.json"},
                                                {"classic_gpt2", "vocab.json"},
                                                {"classic_gpt2", "merges.txt"},
                                                {"classic_t5", "spiece.model"},
                                                {"classic_albert", "spiece.model"},
                                                {"classic_llama", "tokenizer.model"}}));
  const Outcome outcome = load_damaged_folder(name, damaged, mutated);
  CHECK(outcome.refused + outcome.usable == kDamages);
  CHECK(outcome.refused > 10);
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
