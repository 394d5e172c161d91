#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/support.h"
#include "tokenizer/pipeline/char_and_byte_tokenizers.h"
#include "tokenizer/tokenizer.h"

using namespace zoo;

TEST_CASE("A directory without a tokenizer is said to have none") {
  const test::TemporaryDirectory directory;
  CHECK_FALSE(has_tokenizer(directory.path()));
  CHECK(test::message_of([&] { load_tokenizer(directory.path()); }) ==
        "'" + directory.path().string() +
            "' has no tokenizer: expected tokenizer.json, spiece.model, tokenizer.model, vocab.txt, "
            "vocab.json with "
            "merges.txt, source.spm with vocab.json, spm.model (DeBERTa), or sentencepiece.bpe.model "
            "(M2M-100's with vocab.json)");
  CHECK_FALSE(has_tokenizer(directory / "absent"));
  CHECK_THAT(test::message_of([&] { load_tokenizer(directory / "absent"); }),
             Catch::Contains("is not a directory"));
}

TEST_CASE("Every file name that holds a tokenizer is found") {
  CHECK(has_tokenizer(test::golden("char")));
  CHECK(has_tokenizer(test::golden("unigram")));
  CHECK(has_tokenizer(test::golden("bpe")));
  CHECK(load_tokenizer(test::golden("unigram"))->kind() == "sentencepiece");
  CHECK(load_tokenizer(test::golden("bpe"))->kind() == "sentencepiece");
}

TEST_CASE("A tokenizer.json is preferred to the model it was converted from, as in transformers") {
  const test::TemporaryDirectory directory;
  std::filesystem::copy(test::golden("unigram/spiece.model"), directory.path());
  CHECK(load_tokenizer(directory.path())->kind() == "sentencepiece");
  ByteTokenizer().save(directory.path());
  CHECK(load_tokenizer(directory.path())->kind() == "byte");
}

TEST_CASE("A directory under a tokenizer's name is an error") {
  const test::TemporaryDirectory directory;
  const auto name = GENERATE(as<std::string>{}, "tokenizer.json", "spiece.model");
  std::filesystem::create_directory(directory / name);
  CHECK_THAT(test::message_of([&] { load_tokenizer(directory.path()); }),
             Catch::Contains(name) && Catch::Contains("it is a directory"));
}
