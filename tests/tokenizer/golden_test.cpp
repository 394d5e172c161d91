// Compares with ids and files of the `tokenizers` and `sentencepiece` Python packages
// (tests/golden/make_tokenizers.py).
#include <nlohmann/json.hpp>

#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/support.h"
#include "tokenizer/tokenizer.h"

using namespace zoo;
using nlohmann::json;

TEST_CASE("Ids and text equal those of the libraries that made the files") {
  const auto name = GENERATE(as<std::string>{}, "char", "byte", "unigram", "bpe");
  const json expected = json::parse(test::read_bytes(test::golden("expected.json"))).at(name);
  REQUIRE(expected.size() >= 9);
  const auto tokenizer = load_tokenizer(test::golden(name));
  for (const json& example : expected) {
    INFO(name << ": " << example.at("text"));
    const auto ids = example.at("ids").get<test::Ids>();
    CHECK(tokenizer->encode(example.at("text").get<std::string>()) == ids);
    CHECK(tokenizer->decode(ids) == example.at("decoded").get<std::string>());
  }
}

TEST_CASE("The tokenizer.json that is saved says the same as the one that the tokenizers package wrote") {
  const auto name = GENERATE(as<std::string>{}, "char", "byte");
  const test::TemporaryDirectory directory;
  load_tokenizer(test::golden(name))->save(directory.path());
  const json ours = json::parse(test::read_bytes(directory / "tokenizer.json"));
  json theirs = json::parse(test::read_bytes(test::golden(name) / "tokenizer.json"));
  CHECK(ours == theirs);
  const json config = json::parse(test::read_bytes(directory / "tokenizer_config.json"));
  CHECK(config.at("tokenizer_class") == "PreTrainedTokenizerFast");
  CHECK(config.at("clean_up_tokenization_spaces") == false);
}

TEST_CASE("A sentencepiece model is saved as it was read") {
  const auto name = GENERATE(as<std::string>{}, "unigram/spiece.model", "bpe/tokenizer.model");
  const test::TemporaryDirectory directory;
  load_tokenizer(test::golden(name).parent_path())->save(directory.path());
  CHECK(test::read_bytes(directory / "spiece.model") == test::read_bytes(test::golden(name)));
}
