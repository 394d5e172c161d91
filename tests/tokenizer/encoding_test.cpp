// Special tokens around texts, truncation and offsets.
#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/support.h"
#include "tokenizer/pipeline/char_and_byte_tokenizers.h"

using namespace zoo;

namespace {

/// Bytes, with 300 before a text and 301 after it.
class Framed final : public Tokenizer {
 public:
  std::string_view kind() const override { return "framed"; }
  std::int64_t vocab_size() const override { return 302; }
  Encoding tokenize(std::string_view text, const EncodeOptions&, bool) const override {
    return {.ids = bytes_.encode(text)};
  }
  std::string text_of(std::span<const TokenId> ids, bool) const override { return bytes_.decode(ids); }
  void save(const std::filesystem::path&) const override {}

 protected:
  const EncodingTemplate& encoding_template() const override { return template_; }

 private:
  ByteTokenizer bytes_;
  EncodingTemplate template_ = bert_template(300, 301);
};

/// A BERT directory with these words after the special tokens: their ids begin at 5.
class BertDirectory {
 public:
  explicit BertDirectory(const std::string& words, const std::string& config = "{}") {
    std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n" + words;
    for (char& c : vocabulary) c = c == ' ' ? '\n' : c;
    test::write_bytes(directory_ / "vocab.txt", vocabulary + "\n");
    test::write_bytes(directory_ / "tokenizer_config.json", config);
  }
  std::unique_ptr<Tokenizer> load() const { return load_tokenizer(directory_.path()); }

 private:
  test::TemporaryDirectory directory_;
};

std::vector<std::string> sources(const std::string& text, const Encoding& encoding) {
  std::vector<std::string> result;
  for (const ByteRange range : encoding.offsets)
    result.push_back(text.substr(range.begin, range.end - range.begin));
  return result;
}

}  // namespace

TEST_CASE("A pair is [CLS] first [SEP] second [SEP], with type 1 from the second text on") {
  const Encoding encoding = Framed().encode_pair("ab", "c", {});
  CHECK(encoding.ids == test::Ids{300, 'a', 'b', 301, 'c', 301});
  CHECK(encoding.type_ids == std::vector<std::int32_t>{0, 0, 0, 0, 1, 1});
  CHECK(encoding.texts == std::vector<std::int8_t>{-1, 0, 0, -1, 1, -1});
  CHECK(Framed().encode_pair("ab", "c", {.add_special_tokens = false}).ids == test::Ids{'a', 'b', 'c'});
  CHECK(Framed().encode("", EncodeOptions{}).ids == test::Ids{300, 301});
}

TEST_CASE("A text is cut to a length that counts the special tokens") {
  CHECK(Framed().encode("abcdef", {.max_length = 5}).ids == test::Ids{300, 'a', 'b', 'c', 301});
  CHECK(Framed().encode("abcdef", {.add_special_tokens = false, .max_length = 5}).ids ==
        test::Ids{'a', 'b', 'c', 'd', 'e'});
  CHECK(Framed().encode("abc", {.max_length = 5}).size() == 5);
  CHECK(Framed().encode("abc", {.max_length = 2}).ids == test::Ids{300, 301});
  CHECK(test::message_of([] { Framed().encode("abc", {.max_length = 1}); }) ==
        "max_length 1 has no room for the 2 special tokens");
}

TEST_CASE("The longer text of a pair is cut first, then both equally") {
  const auto cut = [](std::string first, std::string second, std::size_t max_length) {
    const Encoding encoding = Framed().encode_pair(first, second, {.max_length = max_length});
    return std::pair(std::count(encoding.texts.begin(), encoding.texts.end(), 0),
                     std::count(encoding.texts.begin(), encoding.texts.end(), 1));
  };
  using Sizes = std::pair<std::ptrdiff_t, std::ptrdiff_t>;
  CHECK(cut("abcdefgh", "xy", 10) == Sizes{5, 2});
  CHECK(cut("ab", "stuvwxyz", 10) == Sizes{2, 5});
  CHECK(cut("abcdefgh", "stuvwxyz", 10) ==
        Sizes{3, 4});  // an odd room: the second of equal texts keeps one more
  CHECK(cut("abcdefghi", "stuvwxyz", 10) == Sizes{4, 3});
  CHECK(cut("abcd", "wxyz", 11) == Sizes{4, 4});
}

TEST_CASE("A question answering pair is cut in the text alone") {
  const EncodeOptions second{.max_length = 8, .truncation = Truncation::only_second};
  CHECK(Framed().encode_pair("abc", "stuvwxyz", second).ids ==
        test::Ids{300, 'a', 'b', 'c', 301, 's', 't', 301});
  const EncodeOptions first{.max_length = 8, .truncation = Truncation::only_first};
  CHECK(Framed().encode_pair("stuvwxyz", "abc", first).ids ==
        test::Ids{300, 's', 't', 301, 'a', 'b', 'c', 301});
  CHECK_THAT(test::message_of([&] { Framed().encode_pair("abcdef", "xyz", second); }),
             Catch::Contains("a text of 3 tokens cannot be cut by 4"));
  CHECK_THAT(test::message_of([&] { Framed().encode("abcdefghi", second); }),
             Catch::Contains("no second text"));
}

TEST_CASE("Offsets stay right where cleaning changes the length of a text") {
  const std::string text = "Ｃafé\u0301  \u0130s\u200b中ﬁ!";
  const BertDirectory bert("cafe is 中 ﬁ ! ｃafe i ##s");
  const Encoding encoding = bert.load()->encode(text, EncodeOptions{});
  // İ is i with a dot that is stripped. Marks and the zero-width space are removed and belong to no token.
  // NFD keeps the ligature.
  CHECK(encoding.ids == test::Ids{2, 10, 6, 7, 8, 9, 3});
  CHECK(sources(text, encoding) == std::vector<std::string>{"", "Ｃafé", "\u0130s", "中", "ﬁ", "!", ""});
  CHECK(encoding.words == std::vector<std::int32_t>{-1, 0, 1, 2, 3, 4, -1});
}

TEST_CASE("Settings of vocab.txt directories are those of transformers") {
  const std::string words = "the The é e 中文 中 文";
  const auto ids = [&](const std::string& config, const std::string& text) {
    return BertDirectory(words, config).load()->encode(text);
  };
  CHECK(ids("{}", "The é 中文") == test::Ids{5, 8, 10, 11});
  CHECK(ids(R"({"do_lower_case": false})", "The é 中文") == test::Ids{6, 7, 10, 11});
  CHECK(ids(R"({"do_lower_case": false, "strip_accents": true})", "The é") == test::Ids{6, 8});
  CHECK(ids(R"({"strip_accents": false, "tokenize_chinese_chars": false})", "The é 中文") ==
        test::Ids{5, 7, 9});
  CHECK(ids("{}", "the[MASK]the") == test::Ids{5, 4, 5});
  CHECK_THAT(
      test::message_of([&] { ids(R"({"do_lower_case": 3})", ""); }),
      Catch::Contains("tokenizer_config.json") && Catch::Contains("do_lower_case is number: expected true"));
  // A token that the settings name and the vocabulary lacks gets the next id.
  CHECK(BertDirectory(words, R"({"cls_token": "[BOS]"})").load()->encode("the", EncodeOptions{}).ids ==
        test::Ids{12, 5, 3});
  CHECK(ids(R"({"image_token": "<image>"})", "the<image>the") == test::Ids{5, 12, 5});
  CHECK(BertDirectory(words, R"({"max_len": 6})").load()->limits().max_length == 6);
  CHECK(BertDirectory(words, R"({"max_len": 6, "model_max_length": 8})").load()->limits().max_length == 8);
  CHECK_THAT(test::message_of([&] { ids(R"({"split_special_tokens": true})", ""); }),
             Catch::Contains("split_special_tokens is true"));
}

TEST_CASE("The end of a line in vocab.txt may be that of Windows") {
  const test::TemporaryDirectory directory;
  test::write_bytes(directory / "vocab.txt", "[UNK]\r\n[CLS]\r\n[SEP]\r\nthe\r\n");
  CHECK(load_tokenizer(directory.path())->encode("the", EncodeOptions{}).ids == test::Ids{1, 3, 2});
}

TEST_CASE("A vocabulary without the tokens that frame a text is an error") {
  const test::TemporaryDirectory directory;
  test::write_bytes(directory / "vocab.txt", "[UNK]\nthe\n");
  CHECK_THAT(test::message_of([&] { load_tokenizer(directory.path()); }),
             Catch::Contains("vocab.txt") && Catch::Contains("has no token '[CLS]'"));
  test::write_bytes(directory / "vocab.txt", "");
  CHECK_THAT(test::message_of([&] { load_tokenizer(directory.path()); }),
             Catch::Contains("vocab.txt': is empty"));
}

TEST_CASE("A vocab.json needs its merges.txt") {
  const test::TemporaryDirectory directory;
  test::write_bytes(directory / "vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  CHECK_THAT(test::message_of([&] { load_tokenizer(directory.path()); }), Catch::Contains("merges.txt"));
  test::write_bytes(directory / "merges.txt", "#version: 0.2\na b\n");
  CHECK(load_tokenizer(directory.path())->encode("abba") == test::Ids{2, 1, 0});
  test::write_bytes(directory / "merges.txt", "a b c\n");
  CHECK_THAT(test::message_of([&] { load_tokenizer(directory.path()); }),
             Catch::Contains("merges.txt': line 1 is 'a b c': expected two tokens"));
  test::write_bytes(directory / "merges.txt", "a c\n");
  CHECK_THAT(test::message_of([&] { load_tokenizer(directory.path()); }),
             Catch::Contains("merges.txt") && Catch::Contains("needs the token 'c'"));
  test::write_bytes(directory / "vocab.json", R"({"a": "0"})");
  CHECK_THAT(test::message_of([&] { load_tokenizer(directory.path()); }),
             Catch::Contains("vocab.json': \"a\" is \"0\": expected an id"));
}

TEST_CASE("RoBERTa's offsets leave out the space before a word, but not a letter for one that was added") {
  const auto roberta = load_tokenizer(std::filesystem::path(ZOO_SOURCE_DIR) / "tests" / "golden" /
                                      "tokenizer_pipelines" / "byte_bpe_roberta");
  const std::string text = "the cat</s>the  cat ";
  const Encoding encoding = roberta->encode(text, {.add_special_tokens = false});
  // As `tokenizers` has it: after an added token, the letter is taken for the space that was added.
  CHECK(sources(text, encoding) == std::vector<std::string>{"the", "cat", "</s>", "he", "", "cat", ""});
}

// Expected ranges are those of `tokenizers` 0.23. Strip has removed the text's first two spaces, ByteLevel
// adds one: only before a text's first token `tokenizers` knows that it was added, and counts a special token
// that was joined with the text earlier as its first.
TEST_CASE("Offsets leave out an added space before the first token, unless a special token came first") {
  const std::string begin =
      R"({"model": {"type": "BPE", "vocab": {"<s>": 0, "</s>": 1, "Ġ": 2, "a": 3, "Ġa": 4},
      "merges": ["Ġ a"]}, "normalizer": {"type": "Strip", "strip_left": true, "strip_right": false},
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
      "post_processor": {"type": "Sequence", "processors": [)";
  const std::string byte_level = R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true})";
  const std::string around = R"("sep": ["</s>", 1], "cls": ["<s>", 0])";
  const std::string bert = R"({"type": "BertProcessing", )" + around + "}";
  const std::string roberta =
      R"({"type": "RobertaProcessing", "trim_offsets": false, "add_prefix_space": true, )" + around + "}";
  const std::string piece =
      R"([{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}})";
  const std::string on_template = R"({"type": "TemplateProcessing", "single": )" + piece + R"(], "pair": )" +
                                  piece +
                                  R"(, {"Sequence": {"id": "B", "type_id": 0}}],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}})";
  struct Case {
    std::string processors;
    std::vector<std::uint32_t>
        begins;  // of "a": one text, without special tokens, first and second of a pair
  };
  for (const Case& each :
       {Case{byte_level, {2, 2, 2, 2}}, Case{bert + ", " + byte_level, {3, 2, 3, 2}},
        Case{byte_level + ", " + bert, {2, 2, 2, 2}}, Case{roberta + ", " + byte_level, {3, 2, 3, 3}},
        Case{on_template + ", " + byte_level, {2, 2, 2, 2}}}) {
    const test::TemporaryDirectory directory;
    test::write_bytes(directory / "tokenizer.json", begin + each.processors + "]}}");
    const auto tokenizer = load_tokenizer(directory.path());
    std::vector<std::uint32_t> begins;
    for (const Encoding& encoding :
         {tokenizer->encode("  a", EncodeOptions{}), tokenizer->encode("  a", {.add_special_tokens = false}),
          tokenizer->encode_pair("  a", "  a", EncodeOptions{})})
      for (std::size_t i = 0; i < encoding.size(); ++i)
        if (encoding.ids[i] == 4) begins.push_back(encoding.offsets[i].begin);
    CAPTURE(each.processors);
    CHECK(begins == each.begins);
  }
}

TEST_CASE("Char and byte tokenizers give the offsets of each character and byte") {
  const std::string text = "aé中";
  const Encoding characters = CharTokenizer::train(text).encode(text, EncodeOptions{});
  CHECK(sources(text, characters) == std::vector<std::string>{"a", "é", "中"});
  CHECK(ByteTokenizer().encode(text, EncodeOptions{}).offsets.back() == ByteRange{5, 6});
}

TEST_CASE("A sentencepiece model gives offsets into the text as it was written") {
  const auto tokenizer = load_tokenizer(test::golden("unigram"));
  const std::string text = "  the   cat";
  const Encoding encoding = tokenizer->encode(text, EncodeOptions{});
  CHECK(encoding.ids == tokenizer->encode(text));
  REQUIRE(encoding.offsets.size() == encoding.size());
  std::string joined;
  for (const std::string& source : sources(text, encoding)) joined += source;
  joined.erase(std::remove(joined.begin(), joined.end(), ' '), joined.end());
  CHECK(joined == "thecat");
  CHECK(encoding.words.front() == 0);
  CHECK(encoding.words.back() == 1);
}
