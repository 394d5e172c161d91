// Error messages for a tokenizer.json that cannot be used.
#include <nlohmann/json.hpp>

#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/support.h"

using namespace zoo;
using nlohmann::json;

namespace {

json golden_json(const std::string& name) {
  return json::parse(test::read_bytes(std::filesystem::path(ZOO_SOURCE_DIR) / "tests" / "golden" /
                                      "tokenizer_pipelines" / name / "tokenizer.json"));
}

std::unique_ptr<Tokenizer> load(const json& root) {
  const test::TemporaryDirectory directory;
  test::write_bytes(directory / "tokenizer.json", root.dump());
  return load_tokenizer(directory.path());
}

/// The message for a golden file after replacing the value at a JSON pointer, from the key on.
std::string fault_with(const std::string& name, const std::string& pointer, const json& value) {
  json changed = golden_json(name);
  changed[json::json_pointer(pointer)] = value;
  const std::string message = test::message_of([&] { load(changed); });
  const std::string file = "tokenizer.json': ";
  const std::size_t at = message.find(file);
  REQUIRE(at != std::string::npos);
  return message.substr(at + file.size());
}

}  // namespace

TEST_CASE("A part of an unknown type is named with its place and its type") {
  using Catch::StartsWith;
  CHECK_THAT(
      fault_with("wordpiece_uncased", "/pre_tokenizer/type", "UnicodeScripts"),
      StartsWith(
          "pre_tokenizer.type is UnicodeScripts, a pre-tokenizer that is not supported: expected one of "
          "BertPreTokenizer, "));
  CHECK_THAT(fault_with("wordpiece_uncased", "/normalizer/type", "Upper"),
             StartsWith("normalizer.type is Upper, a normalizer that is not supported: expected one of "));
  CHECK_THAT(fault_with("wordpiece_uncased", "/decoder/type", "CTC"),
             StartsWith("decoder.type is CTC, a decoder that is not supported: expected one of "));
  CHECK_THAT(
      fault_with("wordpiece_uncased", "/post_processor/type", "Own"),
      StartsWith("post_processor.type is Own, a post-processor that is not supported: expected one of "));
  CHECK(fault_with("wordpiece_uncased", "/model/type", "Own") ==
        "model.type is Own, which is not supported: expected BPE, WordPiece, WordLevel or Unigram");
  CHECK_THAT(fault_with("byte_bpe_splits", "/pre_tokenizer/pretokenizers/1/type", "Own"),
             StartsWith("pre_tokenizer.pretokenizers[1].type is Own, a pre-tokenizer"));
  CHECK_THAT(fault_with("unigram_normalized", "/normalizer/normalizers/0/type", "Own"),
             StartsWith("normalizer.normalizers[0].type is Own, a normalizer"));
  CHECK_THAT(fault_with("byte_bpe_llama3", "/post_processor/processors/0/type", "Own"),
             StartsWith("post_processor.processors[0].type is Own, a post-processor"));
  CHECK_THAT(fault_with("bpe_llama2", "/decoder/decoders/3/type", "Own"),
             StartsWith("decoder.decoders[3].type is Own, a decoder"));
}

TEST_CASE("A setting that makes no sense is named") {
  CHECK(fault_with("byte_bpe_splits", "/pre_tokenizer/pretokenizers/1/behavior", "Away") ==
        "pre_tokenizer.pretokenizers[1].behavior is Away: expected Removed, Isolated, MergedWithPrevious, "
        "MergedWithNext or Contiguous");
  CHECK_THAT(fault_with("byte_bpe_splits", "/pre_tokenizer/pretokenizers/1/pattern/Regex", "[a"),
             Catch::StartsWith("pre_tokenizer.pretokenizers[1].pattern.Regex is not a regular expression"));
  CHECK(fault_with("unigram_t5", "/pre_tokenizer/pretokenizers/1/prepend_scheme", "last") ==
        "pre_tokenizer.pretokenizers[1].prepend_scheme is last: expected always, never or first");
  CHECK(fault_with("unigram_t5", "/pre_tokenizer/pretokenizers/1/replacement", "ab") ==
        "pre_tokenizer.pretokenizers[1].replacement is 'ab': expected one character");
  CHECK(fault_with("unigram_t5", "/normalizer/precompiled_charsmap", "?") ==
        "normalizer.precompiled_charsmap is not base64");
  CHECK_THAT(fault_with("unigram_t5", "/normalizer/precompiled_charsmap", "AAAA"),
             Catch::StartsWith(
                 "normalizer.precompiled_charsmap cannot be used: the normalization table is damaged"));
  CHECK(fault_with("bpe_suffix", "/model/dropout", 0.1) == "model.dropout is not supported: expected null");
  CHECK(fault_with("unigram_t5", "/model/unk_id", 9999).find("model: unk_id is 9999: expected 0 to ") == 0);
  CHECK(fault_with("unigram_t5", "/model/vocab/5", json::array({"a"})) ==
        "model.vocab[5] is array: expected a text and a number");
  CHECK(fault_with("unigram_t5", "/model/vocab", json::array()) == "model.vocab is empty");
  CHECK(fault_with("wordpiece_uncased", "/model/max_input_chars_per_word", -1) ==
        "model.max_input_chars_per_word is -1: expected an integer that is not negative");
  CHECK(fault_with("wordpiece_uncased", "/model/vocab/the", -3) ==
        "model.vocab[\"the\"] is -3: expected an integer from 0 to 4000000");
  CHECK(fault_with("wordpiece_uncased", "/post_processor/special_tokens", json::object()) ==
        "post_processor.special_tokens has no \"[CLS]\", which the template uses");
  CHECK(fault_with("wordpiece_uncased", "/post_processor/single/1/Sequence/id", "C") ==
        "post_processor.single[1].Sequence.id is C: expected A or B");
  CHECK(fault_with("wordpiece_added_tokens", "/post_processor/cls", "[CLS]") ==
        "post_processor.cls is string: expected an array");
  CHECK(fault_with("wordpiece_added_tokens", "/added_tokens/0", 7) ==
        "added_tokens[0] is number: expected an object");
}

TEST_CASE("Merges that do not fit the vocabulary are named") {
  CHECK(fault_with("byte_bpe_gpt2", "/model/merges/3", "one") ==
        "model.merges[3] is \"one\": expected two tokens with a space between them");
  CHECK(fault_with("byte_bpe_gpt2", "/model/merges/3", 5) ==
        "model.merges[3] is number: expected two tokens");
  CHECK_THAT(fault_with("byte_bpe_gpt2", "/model/merges/3", json::array({"t", "nonsense"})),
             Catch::Contains("model: merge 3 needs the token 'nonsense'"));
}

TEST_CASE("Truncation and padding in the file change nothing") {
  json changed = golden_json("wordpiece_uncased");
  changed["truncation"] = {
      {"max_length", 3}, {"strategy", "LongestFirst"}, {"stride", 0}, {"direction", "Right"}};
  changed["padding"] = {
      {"strategy", {{"Fixed", 20}}}, {"pad_id", 0}, {"pad_type_id", 0}, {"pad_token", "[PAD]"}};
  const auto plain = load(golden_json("wordpiece_uncased"));
  CHECK(load(changed)->encode("the cat sat on the mat", EncodeOptions{}).ids ==
        plain->encode("the cat sat on the mat", EncodeOptions{}).ids);
}

TEST_CASE("A file of the first versions, without the model's type, is read") {
  for (const char* name : {"wordpiece_uncased", "byte_bpe_gpt2", "unigram_t5"}) {
    json changed = golden_json(name);
    changed["model"].erase("type");
    CHECK(load(changed)->encode("the cat") == load(golden_json(name))->encode("the cat"));
  }
}

namespace {

// The message of a tokenizer with these normalizers in sequence for a text.
std::string fault_of_text(const json& normalizers, const std::string& text) {
  json changed = golden_json("wordpiece_uncased");
  changed["normalizer"] = {{"type", "Sequence"}, {"normalizers", normalizers}};
  const auto tokenizer = load(changed);
  return test::message_of([&] { tokenizer->encode(text, EncodeOptions{}); });
}

json replacing(const json& pattern, const std::string& content) {
  return {{"type", "Replace"}, {"pattern", pattern}, {"content", content}};
}

json repeated(const json& one, std::size_t count) { return std::vector<json>(count, one); }

}  // namespace

TEST_CASE("Normalizers that multiply a text are refused by name") {
  using Catch::Contains;
  const json tenfold = repeated(replacing({{"String", "o"}}, std::string(10, 'o')), 12),
             doubled = repeated(replacing({{"String", "o"}}, "oo"), 30);
  for (const json& sequence : {tenfold, doubled})
    CHECK_THAT(fault_of_text(sequence, "oo"),
               Contains("the normalizer Replace of tokenizer.json makes a text of 2 bytes too long"));
  std::string lines;
  for (int i = 0; i < 50; ++i) lines += "o\n";
  CHECK_THAT(fault_of_text(repeated(replacing({{"Regex", ".*"}}, std::string(100000, 'o')), 1), lines),
             Contains("the normalizer Replace of tokenizer.json makes a text of 100 bytes too long"));
  const json prepended = repeated({{"type", "Prepend"}, {"prepend", std::string(1000, 'o')}}, 5000);
  CHECK_THAT(fault_of_text(prepended, "oo"), Contains("the normalizer Prepend of tokenizer.json"));
  // Short texts between added tokens count together.
  std::string many;
  for (int i = 0; i < 3000; ++i) many += "[SEP]o";
  CHECK_THAT(fault_of_text(repeated(replacing({{"String", "o"}}, std::string(900000, 'o')), 1), many),
             Contains("the normalizer Replace"));
  json changed = golden_json("wordpiece_uncased");
  changed["decoder"] = {{"type", "Sequence"},
                        {"decoders", repeated(replacing({{"Regex", "."}}, "oooooooooo"), 12)}};
  CHECK_THAT(test::message_of([&] {
               load(changed)->decode(TokenIds{5, 6, 7});
             }),
             Contains("the decoder of tokenizer.json makes a text"));
  // One search takes less steps than one may, all together more.
  const json searches = repeated(replacing({{"Regex", "(a|aa)+$"}}, "b"), 2000);
  CHECK_THAT(fault_of_text(searches, std::string(24, 'a') + "c"),
             Contains("the expressions take too many steps"));
  // What published files do stays: the longest growth of NFKD, and a letter in a long text.
  changed = golden_json("wordpiece_uncased");
  changed["normalizer"] = {{"type", "Sequence"},
                           {"normalizers", {{{"type", "NFKD"}}, {{"type", "ByteLevel"}}}}};
  std::string long_text;
  for (int i = 0; i < 100000; ++i) long_text += "\uFDFA";
  CHECK_NOTHROW(load(changed)->encode(long_text));
}
