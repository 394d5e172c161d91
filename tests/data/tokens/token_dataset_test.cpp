#include "data/tokens/token_dataset.h"

#include <nlohmann/json.hpp>

#include "data/base/json.h"
#include "tests/data/support.h"
#include "tests/support/temporary_directory.h"
#include "tokenizer/pipeline/char_and_byte_tokenizers.h"

namespace fs = std::filesystem;
using Catch::Contains;
using zoo::load_token_dataset;
using zoo::TokenDataset;
using zoo::TokenFile;
using zoo::TokenId;
using zoo::TokenIds;
using zoo::test::message_of;
using zoo::test::TemporaryDirectory;
using zoo::test::write_bytes;

namespace {

/// The bytes of the text, plus `shift`.
class ShiftedBytes final : public zoo::Tokenizer {
 public:
  ShiftedBytes(TokenId shift, std::int64_t vocab_size) : shift_(shift), vocab_size_(vocab_size) {}
  std::string_view kind() const override { return "shifted"; }
  std::int64_t vocab_size() const override { return vocab_size_; }
  zoo::Encoding tokenize(std::string_view text, const zoo::EncodeOptions&, bool) const override {
    TokenIds ids;
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte) + shift_);
    return {.ids = ids};
  }
  std::string text_of(std::span<const TokenId>, bool) const override { return ""; }
  void save(const fs::path&) const override {}

 private:
  TokenId shift_;
  std::int64_t vocab_size_;
};

const ShiftedBytes kBytes(0, 256);

constexpr const char* kSha256 =  // of Written's text, from Python's hashlib
    "67cb49d431b986fda806c30a868f45dad4d8764a19ea9d981170b258b3dfec47";

void write(const fs::path& folder, std::string_view text, const zoo::Tokenizer& tokenizer) {
  zoo::write_text_as_tokens(folder, text, zoo::validation_begin(text), tokenizer,
                            zoo::TextEncoder::of(tokenizer), 1, [](std::size_t) {});
}

/// A valid dataset directory with 10 + 2 tokens of uint16, to damage.
struct Written {
  TemporaryDirectory folder;
  nlohmann::json meta;
  Written() {
    write(folder.path(), "012345432169", ShiftedBytes(-'0', 10));
    meta = zoo::read_json(folder / "meta.json");
  }

  // The error after changing one value of meta.json.
  std::string error_with(const char* key, const nlohmann::json& value) const {
    nlohmann::json changed = meta;
    changed[key] = value;
    zoo::write_json(folder / "meta.json", changed);
    return error();
  }
  std::string error() const {
    return message_of([this] { load_token_dataset(folder.path()); });
  }
};

}  // namespace

TEST_CASE("Ids on disk are those of the text, and leave nothing in the folder") {
  const TemporaryDirectory folder;
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += "a \u00e4 " + std::to_string(i);
  const auto tokenizer = zoo::CharTokenizer::train(text);
  std::size_t heard = 0;
  const TokenFile tokens = tokens_on_disk(text, tokenizer, TextEncoder::of(tokenizer), "the text",
                                          folder.path(), [&](std::size_t bytes) { heard = bytes; });
  const TokenIds expected = tokenizer.encode(text);
  REQUIRE(tokens.size() == expected.size());
  bool equal = true;
  for (std::size_t i = 0; i < expected.size(); ++i) equal = equal && tokens[i] == expected[i];
  CHECK(equal);
  CHECK(heard == text.size());
  CHECK(tokens.name() == "the text");
  CHECK(fs::is_empty(folder.path()));
  const auto ignore = [](std::size_t) {};
  CHECK_THROWS_WITH(tokens_on_disk(text + "\u00e9", tokenizer, TextEncoder::of(tokenizer), "the text",
                                   folder.path(), ignore),
                    Catch::StartsWith("after byte "));
}

TEST_CASE("the last tenth of the characters is the validation split") {
  // Sizes from Python: n - int(n * 0.9). 1115394 is tinyshakespeare, whose splits nanoGPT publishes.
  const auto [characters, train] = GENERATE(table<std::size_t, std::size_t>(
      {{0, 0}, {1, 0}, {2, 1}, {9, 8}, {10, 9}, {19, 17}, {30, 27}, {1000, 900}, {1115394, 1003854}}));
  const TokenDataset dataset = zoo::tokenize_dataset(std::string(characters, 'a'), kBytes);
  CHECK(dataset.train.size() == train);
  CHECK(dataset.val.size() == characters - train);
  CHECK(dataset.vocab_size == 256);
}

TEST_CASE("the split counts characters, not bytes, and cuts between them") {
  // 10 characters in 17 bytes: nine of them are 16 bytes, the last is 1.
  const std::string text =
      "\xE2\x82\xAC\xC3\xA9"
      "abc\xF0\x9F\x98\x80"
      "de\xC3\xA9"
      "z";
  REQUIRE(text.size() == 17);
  const TokenDataset dataset = zoo::tokenize_dataset(text, kBytes);
  CHECK(dataset.train.size() == 16);
  REQUIRE(dataset.val.size() == 1);
  CHECK(dataset.val[0] == 'z');
  // The last character is the long one.
  CHECK(zoo::tokenize_dataset("abcdefghi\xF0\x9F\x98\x80", kBytes).val.size() == 4);
}

TEST_CASE("tokenize_dataset refuses invalid UTF-8 and ids outside the vocabulary") {
  CHECK_THAT(message_of([] { zoo::tokenize_dataset("ab\n\xFFz", kBytes); }), Contains("line 2"));
  CHECK_THAT(message_of([] { zoo::tokenize_dataset("abcdefghijz", ShiftedBytes(0, 'z')); }),
             Contains("the validation split: the id 122 at position 1"));
}

TEST_CASE("a dataset is read back as it was written") {
  const Written written;
  CHECK(written.meta == nlohmann::json{{"format_version", 1},
                                       {"dtype", "uint16"},
                                       {"vocab_size", 10},
                                       {"tokenizer", "shifted"},
                                       {"train_tokens", 10},
                                       {"val_tokens", 2},
                                       {"source_sha256", kSha256}});
  CHECK(fs::file_size(written.folder / "train.bin") == 20);
  CHECK(zoo::test::count_entries(written.folder.path()) == 3);
  CHECK(zoo::is_token_dataset(written.folder.path()));
  const TokenDataset dataset = load_token_dataset(written.folder.path());
  CHECK(dataset.train.size() == 10);
  CHECK(dataset.train[5] == 5);
  CHECK(dataset.val[1] == 9);
  CHECK(dataset.vocab_size == 10);
}

TEST_CASE("a vocabulary above 65536 is written as uint32") {
  const TemporaryDirectory folder;
  write(folder / "new/set", "abcdefghij", ShiftedBytes(70000, 70256));
  CHECK(zoo::read_json(folder / "new/set/meta.json").at("dtype") == "uint32");
  CHECK(fs::file_size(folder / "new/set/train.bin") == 36);
  CHECK(load_token_dataset(folder / "new/set").val[0] == 70000 + 'j');
}

TEST_CASE("a directory of nanoGPT's, without meta.json, is uint16 with an unknown vocabulary") {
  const TemporaryDirectory folder;
  CHECK_FALSE(zoo::is_token_dataset(folder.path()));
  write_bytes(folder / "train.bin", std::string("\x50\xC3\x01\x00", 4));
  CHECK_THAT(message_of([&] { load_token_dataset(folder.path()); }), Contains("val.bin"));
  write_bytes(folder / "val.bin", std::string("\x02\x00", 2));
  const TokenDataset dataset = load_token_dataset(folder.path());
  CHECK(dataset.train[0] == 50000);
  CHECK_FALSE(dataset.vocab_size);
  write_bytes(folder / "val.bin", "odd");
  CHECK_THAT(message_of([&] { load_token_dataset(folder.path()); }),
             Contains("val.bin") && Contains("3 bytes"));
}

TEST_CASE("a token file of another size than meta.json says is an error") {
  const Written written;
  SECTION("cut short") {
    fs::resize_file(written.folder / "train.bin", 10);
    CHECK_THAT(written.error(), Contains("train.bin") && Contains("expected 10 tokens") && Contains("has 5"));
  }
  SECTION("cut within an id") {
    fs::resize_file(written.folder / "val.bin", 3);
    CHECK_THAT(written.error(), Contains("val.bin") && Contains("3 bytes"));
  }
  SECTION("too long") {
    fs::resize_file(written.folder / "val.bin", 6);
    CHECK_THAT(written.error(), Contains("val.bin") && Contains("val_tokens") && Contains("has 3"));
  }
  SECTION("the other width") {
    CHECK_THAT(written.error_with("dtype", "uint32"), Contains("train.bin") && Contains("has 5"));
  }
  SECTION("missing") {
    fs::remove(written.folder / "val.bin");
    CHECK_THAT(written.error(), Contains("val.bin") && Contains("No such file"));
  }
}

TEST_CASE("an id outside the vocabulary of meta.json is an error with its position") {
  const Written written;
  CHECK_THAT(written.error_with("vocab_size", 9), Contains("val.bin: the id 9 at position 1"));
}

TEST_CASE("a value of the wrong type in meta.json is an error that names the key") {
  const Written written;
  const auto check = [&](const char* key, const nlohmann::json& value) {
    INFO(key << " = " << value);
    CHECK_THAT(written.error_with(key, value), Contains("meta.json") && Contains(key));
  };
  check("vocab_size", "ten");
  check("vocab_size", 10.0);
  check("vocab_size", 0);
  check("vocab_size", -10);
  check("vocab_size", 2147483648);
  check("train_tokens", nullptr);
  check("train_tokens", -6);
  check("train_tokens", 18446744073709551615u);
  check("dtype", 16);
  check("dtype", "int16");
  check("tokenizer", 3);
  check("source_sha256", nlohmann::json::array());
  check("format_version", 2);
  nlohmann::json without = written.meta;
  without.erase("val_tokens");
  zoo::write_json(written.folder / "meta.json", without);
  CHECK_THAT(written.error(), Contains("the key val_tokens is missing"));
  write_bytes(written.folder / "meta.json", "{");
  CHECK_THAT(written.error(), Contains("meta.json") && Contains("line 1"));
}
