#include "tokenizer/files/tokenizer_json.h"

#include <nlohmann/json.hpp>

#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/support.h"

using namespace zoo;
using nlohmann::json;
using test::message_of;

namespace {

json golden_file(const std::string& name) {
  return json::parse(test::read_bytes(test::golden(name) / "tokenizer.json"));
}

std::unique_ptr<Tokenizer> read_text(const std::string& text) {
  const test::TemporaryDirectory directory;
  test::write_bytes(directory / "tokenizer.json", text);
  return read_tokenizer_json(directory / "tokenizer.json", TokenizerSettings::read(directory.path()));
}

/// The message without the temporary folder: from the key on.
std::string fault_of(const std::string& text) {
  const std::string message = message_of([&] { read_text(text); });
  const std::string file = "tokenizer.json': ";
  const std::size_t at = message.find(file);
  REQUIRE(at != std::string::npos);
  return message.substr(at + file.size());
}

/// The message for a golden file after replacing the value at a JSON pointer.
std::string fault_of_change(const std::string& name, const std::string& pointer, const json& value) {
  json changed = golden_file(name);
  changed[json::json_pointer(pointer)] = value;
  return fault_of(changed.dump());
}

/// The same after removing a key.
std::string fault_without(const std::string& name, const std::string& parent, const std::string& key) {
  json changed = golden_file(name);
  changed[json::json_pointer(parent)].erase(key);
  return fault_of(changed.dump());
}

}  // namespace

TEST_CASE("A file that is no JSON object is an error") {
  CHECK_THAT(fault_of(""), Catch::Contains("not valid JSON"));
  CHECK_THAT(fault_of("{\"model\": "), Catch::Contains("not valid JSON at line 1"));
  CHECK_THAT(fault_of("[]"), Catch::Contains("expected a JSON object"));
  CHECK_THAT(fault_of("{\"a\": \"\xFF\"}"), Catch::Contains("not valid JSON"));
  CHECK_THAT(fault_of(std::string(200000, '[')), Catch::Contains("nested too deeply"));
  CHECK_THAT(fault_of("{\"a\": " + std::string(100000, '[') + std::string(100000, ']') + "}"),
             Catch::Contains("nested too deeply"));
  CHECK_NOTHROW(fault_of("{\"model\": 1e999}"));
}

TEST_CASE("A missing key or a wrong type is named") {
  CHECK(fault_of("{}") == "model is missing: expected an object");
  CHECK(fault_of_change("char", "/model", 3) == "model is number: expected an object");
  CHECK(fault_of(R"({"model": {"vocab": {"a": 0}}})") == "model.type is missing: expected a string");
  CHECK(fault_of_change("char", "/model/type", json::array()) == "model.type is array: expected a string");
  CHECK(fault_without("char", "/model", "vocab") == "model.vocab is missing: expected an object");
  CHECK(fault_of_change("char", "/model/vocab", json::array()) == "model.vocab is array: expected an object");
  CHECK(fault_without("char", "/model", "merges") == "model.merges is missing: expected an array");
  CHECK(fault_of_change("char", "/model/merges", json::object()) ==
        "model.merges is object: expected an array");
  CHECK(fault_of_change("char", "/model/byte_fallback", 1) ==
        "model.byte_fallback is number: expected true or false");
  CHECK(fault_of_change("char", "/pre_tokenizer", "ByteLevel") ==
        "pre_tokenizer is string: expected an object");
  CHECK(fault_of_change("char", "/pre_tokenizer", json::object()) ==
        "pre_tokenizer.type is missing: expected a string");
  CHECK(fault_of_change("char", "/added_tokens", json::object()) ==
        "added_tokens is object: expected an array");
  CHECK(fault_of_change("byte", "/pre_tokenizer/use_regex", "no") ==
        "pre_tokenizer.use_regex is string: expected true or false");
  CHECK(fault_of_change("char", "/version", "2.0") == "version is \"2.0\": expected \"1.0\"");
}

TEST_CASE("Ids that are not 0 to n - 1, each once, are named with their entry") {
  CHECK(fault_of_change("char", "/model/vocab", json::object()) == "model.vocab is empty");
  CHECK(fault_of_change("char", "/model/vocab", {{"a", 0}, {"b", 2}}) ==
        "model.vocab[\"b\"] is 2: expected an integer from 0 to 1, as there are 2 entries");
  CHECK_THAT(fault_of_change("char", "/model/vocab", {{"a", -1}}),
             Catch::StartsWith("model.vocab[\"a\"] is -1: expected"));
  CHECK_THAT(fault_of_change("char", "/model/vocab", {{"a", 0.0}}),
             Catch::StartsWith("model.vocab[\"a\"] is 0.0: exp"));
  CHECK_THAT(fault_of_change("char", "/model/vocab", {{"a", "0"}}),
             Catch::StartsWith("model.vocab[\"a\"] is \"0\": exp"));
  CHECK_THAT(fault_of_change("char", "/model/vocab", {{"a", nullptr}}),
             Catch::StartsWith("model.vocab[\"a\"] is null: "));
  CHECK_THAT(fault_of_change("char", "/model/vocab", {{"a", UINT64_MAX}}),
             Catch::Contains("is 18446744073709551615: exp"));
  CHECK(fault_of_change("char", "/model/vocab", {{"a", 1}, {"b", 1}}) ==
        "model.vocab[\"b\"] is 1, which is also the id of \"a\"");
  CHECK(fault_of_change("char", "/model/vocab", {{"ab", 0}}) ==
        "model.vocab[\"ab\"] is not one character, and there are no merges to build it");
  CHECK_THAT(fault_of_change("char", "/model/vocab", {{"", 0}}), Catch::Contains("is not one character"));
}

TEST_CASE("A file that is more than a list of characters or bytes is read as one of the general kind") {
  const auto kind_with = [](const std::string& name, const std::string& pointer, const json& value) {
    json changed = golden_file(name);
    changed[json::json_pointer(pointer)] = value;
    return std::string(read_text(changed.dump())->kind());
  };
  CHECK(kind_with("char", "/normalizer", {{"type", "NFC"}}) == "bpe");
  CHECK(kind_with("char", "/added_tokens", {{{"id", 99}, {"content", "<pad>"}}}) == "bpe");
  CHECK(kind_with("char", "/decoder", nullptr) == "bpe");
  CHECK(kind_with("char", "/model/end_of_word_suffix", "</w>") == "bpe");
  CHECK(kind_with("byte", "/pre_tokenizer/add_prefix_space", true) == "byte_bpe");
  json swapped = golden_file("byte").at("model").at("vocab");
  std::swap(swapped["A"], swapped["B"]);
  CHECK(kind_with("byte", "/model/vocab", swapped) == "byte_bpe");
  CHECK(kind_with("byte", "/decoder/type", "Fuse") == "byte_bpe");
}

TEST_CASE("Characters may have ids in any order, and a ByteLevel post-processor changes nothing") {
  json changed = golden_file("char");
  changed["model"]["vocab"] = {{"a", 1}, {"b", 0}};
  CHECK(read_text(changed.dump())->encode("ab") == test::Ids{1, 0});
  json bytes = golden_file("byte");
  bytes["post_processor"] = {{"type", "ByteLevel"}, {"trim_offsets", false}};
  CHECK(read_text(bytes.dump())->encode("A") == test::Ids{65});
}

// As transformers, which takes them from its sections "truncation" and "padding".
TEST_CASE("Sides and the padding that no other file names are tokenizer.json's") {
  const test::TemporaryDirectory directory;
  json content = golden_file("../tokenizer_pipelines/wordpiece_uncased");
  content["truncation"] = {{"direction", "Left"}, {"max_length", 8}, {"strategy", "LongestFirst"}};
  content["padding"] = {{"direction", "Left"}, {"pad_token", "[MASK]"}};
  test::write_bytes(directory / "tokenizer.json", content.dump());
  test::write_bytes(directory / "tokenizer_config.json", R"({"cls_token": "[CLS]"})");
  const auto by_sections = load_tokenizer(directory.path());
  CHECK(by_sections->limits().truncates_left);
  CHECK(by_sections->limits().pads_left);
  CHECK_FALSE(by_sections->limits().max_length);
  CHECK(by_sections->special_id(SpecialToken::pad) == 4);
  test::write_bytes(directory / "tokenizer_config.json",
                    R"({"pad_token": "[PAD]", "truncation_side": "right", "padding_side": "right"})");
  const auto by_settings = load_tokenizer(directory.path());
  CHECK_FALSE(by_settings->limits().truncates_left);
  CHECK_FALSE(by_settings->limits().pads_left);
  CHECK(by_settings->special_id(SpecialToken::pad) == 0);
  test::write_bytes(directory / "tokenizer_config.json", R"({"model_max_length": 1e30})");
  CHECK_FALSE(load_tokenizer(directory.path())->limits().max_length);
  test::write_bytes(directory / "tokenizer_config.json", R"({"model_max_length": 2.5})");
  CHECK_THAT(test::message_of([&] { load_tokenizer(directory.path()); }),
             Catch::EndsWith("model_max_length is 2.5: expected a number of tokens"));
}
