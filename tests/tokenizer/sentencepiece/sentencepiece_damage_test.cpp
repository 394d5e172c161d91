#include <cstring>
#include <limits>

#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/support.h"
#include "tokenizer/sentencepiece/sentencepiece_file.h"
#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"

using namespace zoo;
using test::message_of;

namespace {

// A length-delimited protobuf field.
std::string field(int number, const std::string& bytes) {
  std::string result(1, static_cast<char>(number << 3 | 2));
  std::size_t size = bytes.size();
  for (; size >= 0x80; size >>= 7) result += static_cast<char>(0x80 | (size & 0x7F));
  return result + static_cast<char>(size) + bytes;
}

std::string piece(const std::string& text, int type, float score = 0) {
  std::string bits(4, '\0');
  std::memcpy(bits.data(), &score, 4);
  return field(1, field(1, text) + "\x15" + bits + "\x18" + static_cast<char>(type));
}

std::string small_model() { return piece("<unk>", 2) + piece("a", 1, -1) + piece("\u2581", 1, -2); }

// A unit of the double array: see charsmap.cpp.
std::uint32_t unit(std::uint32_t offset, std::uint32_t label, bool has_value = false) {
  return offset << 10 | (has_value ? 0x100u : 0) | label;
}

std::string model_with(const std::vector<std::uint32_t>& trie, const std::string& replacements) {
  std::string map(4 + trie.size() * 4, '\0');
  const auto size = static_cast<std::uint32_t>(trie.size() * 4);
  std::memcpy(map.data(), &size, 4);
  if (!trie.empty()) std::memcpy(map.data() + 4, trie.data(), trie.size() * 4);
  return small_model() + field(3, field(2, map + replacements));
}

// The rule "b" -> "a": the root's children are at 1 ^ label, the value of "b" at 200.
std::vector<std::uint32_t> one_rule(std::uint32_t value) {
  std::vector<std::uint32_t> trie(256, 1u << 31);
  trie[0] = unit(1, 0);
  const std::uint32_t b = 1 ^ 'b';
  trie[b] = unit(b ^ 200, 'b', true);
  trie[200] = 1u << 31 | value;
  return trie;
}

std::string damage_of(const std::string& model) {
  return message_of([&] { SentencePieceFile::parse(model, "F"); });
}

const std::string kOutside = "F: damaged: its normalization table points outside itself";
const std::string kDamaged = "F: damaged: expected a sentencepiece model";

}  // namespace

TEST_CASE("A file that is no model is named, with the cause") {
  const test::TemporaryDirectory directory;
  const auto fault = [&](const std::string& bytes) {
    test::write_bytes(directory / "spiece.model", bytes);
    const std::string message = message_of([&] { load_tokenizer(directory.path()); });
    CHECK_THAT(message, Catch::StartsWith((directory / "spiece.model").string() + ": "));
    return message;
  };
  CHECK_THAT(fault(""), Catch::Contains("has no pieces"));
  CHECK_THAT(fault("this is no model"), Catch::Contains("damaged: expected a sentencepiece model"));
  CHECK_THAT(fault(std::string(100, '\xFF')), Catch::Contains("damaged"));
  CHECK_THAT(fault(piece("a", 1)), Catch::Contains("unk is not defined"));
  CHECK_THAT(fault(small_model() + piece("a", 1)), Catch::Contains("a is already defined"));
  CHECK_THAT(fault(small_model() + piece("", 1)), Catch::Contains("piece must not be empty"));
}

TEST_CASE("A model cut anywhere is an error, or a model of fewer parts") {
  const auto name = GENERATE(as<std::string>{}, "unigram/spiece.model", "bpe/tokenizer.model");
  const std::string model = test::read_bytes(test::golden(name));
  const test::TemporaryDirectory directory;
  std::size_t errors = 0;
  for (std::size_t size = 0; size < model.size(); size += 3) {
    test::write_bytes(directory / "spiece.model", std::string_view(model).substr(0, size));
    try {
      const auto tokenizer = load_tokenizer(directory.path());
      tokenizer->decode(tokenizer->encode("the cat"));
    } catch (const Error&) {
      ++errors;
    }
  }
  CHECK(errors > model.size() / 6);
}

TEST_CASE("A piece that the library cannot hold is refused") {
  CHECK_NOTHROW(SentencePieceFile::parse(small_model(), "F"));
  CHECK(damage_of(small_model() + piece(std::string("x\0y", 3), 1)) ==
        "F: piece 3 holds a zero byte, which sentencepiece cannot match");
  CHECK(damage_of(small_model() + piece("x", 1, std::numeric_limits<float>::quiet_NaN())) ==
        "F: damaged: the score of piece 3 is not a number");
  CHECK(damage_of(small_model() + "\x0B") == kDamaged);  // a group
  CHECK(damage_of(small_model() + "\x0A\x7F"
                                  "x") == kDamaged);                      // longer than the file
  CHECK(damage_of(small_model() + std::string(11, '\x80')) == kDamaged);  // a number without end
}

TEST_CASE("More user-defined symbols that begin with one another than the library has room for are refused") {
  std::string model = small_model(), symbol;
  for (int i = 0; i < 64; ++i) model += piece(symbol += 'u', 4);
  CHECK_NOTHROW(SentencePieceFile::parse(model, "F"));
  CHECK(damage_of(model + piece(symbol + 'u', 4)) ==
        "F: more than 64 user-defined symbols begin with one another");
}

TEST_CASE("A normalization table is followed as the library does it") {
  const test::TemporaryDirectory directory;
  test::write_bytes(directory / "spiece.model", model_with(one_rule(0), std::string("a\0", 2)));
  CHECK(load_tokenizer(directory.path())->encode("ab") == load_tokenizer(directory.path())->encode("aa"));
}

TEST_CASE("A normalization table that leads outside itself is refused") {
  const std::string replacements("a\0", 2);
  CHECK(damage_of(model_with(one_rule(2), replacements)) == kOutside);  // a value past the replacements
  CHECK(damage_of(model_with(one_rule(0), "a")) == kOutside);           // replacements without an end
  CHECK(damage_of(model_with({}, replacements)) == kOutside);           // no root
  CHECK(damage_of(model_with(std::vector<std::uint32_t>(255), replacements)) == kOutside);
  std::vector<std::uint32_t> trie = one_rule(0);
  trie[0] = unit(256, 0);  // children past the end
  CHECK(damage_of(model_with(trie, replacements)) == kOutside);
  trie = one_rule(0);
  trie[0] = 0xC0000000;  // the root is a value, and its bits lead far away
  CHECK(damage_of(model_with(trie, replacements)) == kOutside);
  CHECK(damage_of(small_model() + field(3, field(2, "abc"))) == kOutside);
  CHECK(damage_of(small_model() + field(5, field(2, std::string("\xFF\0\0\0a\0", 6)))) == kOutside);
}

TEST_CASE("A cyclic normalization table is refused") {
  std::vector<std::uint32_t> trie = one_rule(0);
  // "b" leads to itself by "b": a cycle.
  const std::uint32_t b = 1 ^ 'b';
  trie[b] = unit('b', 'b');
  CHECK(damage_of(model_with(trie, std::string("a\0", 2))) == kOutside);
}
