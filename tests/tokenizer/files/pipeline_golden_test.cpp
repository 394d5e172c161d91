// Compares with `tokenizers` and `transformers` on the same files and lines
// (tests/golden/make_tokenizer_pipelines.py).
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/support.h"

using namespace zoo;
using nlohmann::json;

namespace {

std::filesystem::path folder(const std::string& name) {
  return std::filesystem::path(ZOO_SOURCE_DIR) / "tests" / "golden" / "tokenizer_pipelines" / name;
}

std::vector<json> examples(const std::string& name) {
  std::vector<json> result;
  std::istringstream lines(test::read_bytes(folder(name) / "expected.jsonl"));
  for (std::string line; std::getline(lines, line);) result.push_back(json::parse(line));
  REQUIRE(result.size() >= 200);
  return result;
}

json offsets_of(const Encoding& encoding) {
  json offsets = json::array();
  for (const ByteRange range : encoding.offsets) offsets.push_back({range.begin, range.end});
  return offsets;
}

void check_single(const Tokenizer& tokenizer, const json& example) {
  const auto text = example.at("text").get<std::string>();
  const Encoding encoding = tokenizer.encode(text, EncodeOptions{});
  CHECK(json(encoding.ids) == example.at("ids"));
  // Without alignment another code path gives the same ids.
  CHECK(json(tokenizer.encode(text, {.with_offsets = false}).ids) == example.at("ids"));
  CHECK(json(encoding.words) == example.at("words"));
  if (example.contains("offsets")) CHECK(offsets_of(encoding) == example.at("offsets"));
  CHECK(test::replaced(tokenizer.decode(encoding.ids)) == example.at("decoded").get<std::string>());
  CHECK(test::replaced(tokenizer.decode_with_special_tokens(encoding.ids)) ==
        example.at("decoded_all").get<std::string>());
}

void check_pair(const Tokenizer& tokenizer, const json& example) {
  EncodeOptions options;
  if (!example.at("max_length").is_null()) options.max_length = example.at("max_length").get<std::size_t>();
  const Encoding encoding = tokenizer.encode_pair(example.at("text").get<std::string>(),
                                                  example.at("second").get<std::string>(), options);
  CHECK(json(encoding.ids) == example.at("ids"));
  CHECK(json(encoding.type_ids) == example.at("type_ids"));
}

}  // namespace

TEST_CASE("Every kind of tokenizer gives the ids, offsets, words and texts of Hugging Face") {
  const auto name =
      GENERATE(as<std::string>{}, "wordpiece_uncased", "wordpiece_added_tokens", "byte_bpe_gpt2",
               "byte_bpe_roberta", "byte_bpe_llama3", "byte_bpe_splits", "unigram_t5", "unigram_normalized",
               "unigram_bytes", "bpe_llama2", "bpe_suffix", "word_level", "classic_bert", "classic_gpt2",
               "classic_roberta", "classic_t5", "classic_llama", "classic_albert");
  const auto tokenizer = load_tokenizer(folder(name));
  for (const json& example : examples(name)) {
    INFO(name << ": " << example.at("text"));
    if (example.contains("second")) {
      check_pair(*tokenizer, example);
    } else {
      check_single(*tokenizer, example);
    }
  }
}

TEST_CASE("What is saved is what was read, and gives the same ids") {
  const auto name = GENERATE(as<std::string>{}, "wordpiece_uncased", "classic_bert", "classic_gpt2",
                             "classic_llama", "classic_t5");
  const test::TemporaryDirectory directory;
  const auto tokenizer = load_tokenizer(folder(name));
  tokenizer->save(directory.path());
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder(name))) {
    const auto file = entry.path().filename();
    if (file == "expected.jsonl") continue;
    CHECK(test::read_bytes(directory.path() / file) == test::read_bytes(entry.path()));
    ++files;
  }
  CHECK(files > 0);
  CHECK(load_tokenizer(directory.path())->encode("the cat sat") == tokenizer->encode("the cat sat"));
}

TEST_CASE("A tokenizer says what kind it is, and which ids are special") {
  const auto bert = load_tokenizer(folder("classic_bert"));
  CHECK(bert->kind() == "wordpiece");
  CHECK(bert->special_id(SpecialToken::cls) == 2);
  CHECK(bert->special_id(SpecialToken::sep) == 3);
  CHECK(bert->special_id(SpecialToken::pad) == 0);
  CHECK(bert->special_id(SpecialToken::mask) == 4);
  CHECK(bert->special_id(SpecialToken::unk) == 1);
  CHECK_FALSE(bert->special_id(SpecialToken::bos));
  CHECK(bert->token_text(4) == "[MASK]");
  // The token that the settings name and the vocabulary lacks has the last id.
  CHECK(bert->token_text(static_cast<TokenId>(bert->vocab_size() - 1)) == "<new>");
  CHECK(load_tokenizer(folder("wordpiece_uncased"))->special_id(SpecialToken::mask) == 4);

  const auto t5 = load_tokenizer(folder("classic_t5"));
  CHECK(t5->kind() == "sentencepiece");
  CHECK(t5->eos_id() == 1);
  CHECK(t5->vocab_size() == 145 + 100);
  CHECK(t5->token_text(145) == "<extra_id_99>");
  CHECK(t5->token_text(244) == "<extra_id_0>");
  CHECK(load_tokenizer(folder("classic_llama"))->special_id(SpecialToken::bos) == 1);
  CHECK(load_tokenizer(folder("byte_bpe_gpt2"))->kind() == "byte_bpe");
  CHECK(load_tokenizer(folder("unigram_t5"))->kind() == "unigram");
  CHECK(load_tokenizer(folder("word_level"))->kind() == "word");
}

TEST_CASE("Without special tokens an encoding is the plain ids, with nothing around them") {
  const auto name = GENERATE(as<std::string>{}, "wordpiece_uncased", "byte_bpe_roberta", "classic_t5");
  const auto tokenizer = load_tokenizer(folder(name));
  const std::string text = "the cat said: who let the dog out?";
  const Encoding encoding = tokenizer->encode(text, {.add_special_tokens = false});
  CHECK(encoding.ids == tokenizer->encode(text));
  CHECK(encoding.texts == std::vector<std::int8_t>(encoding.size(), 0));
  const Encoding whole = tokenizer->encode(text, EncodeOptions{});
  CHECK(whole.size() > encoding.size());
  CHECK(std::count(whole.texts.begin(), whole.texts.end(), -1) ==
        static_cast<std::ptrdiff_t>(whole.size() - encoding.size()));
}
