#include "tokenizer/text/split_patterns.h"

#include "tests/tokenizer/bpe_support.h"

using namespace zoo;

namespace {

using Words = std::vector<std::string>;

Words split(SplitPattern pattern, std::string_view text) {
  Words words;
  split_words(pattern, text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

constexpr auto kGpt2 = SplitPattern::gpt2;
constexpr auto kCl100k = SplitPattern::cl100k;
constexpr auto kQwen2 = SplitPattern::qwen2;
constexpr auto kO200k = SplitPattern::o200k;

}  // namespace

TEST_CASE("A word takes the space before it, and white space leaves its last character") {
  CHECK(split(kGpt2, "the cat  sat") == Words{"the", " cat", " ", " sat"});
  CHECK(split(kGpt2, "a\n\nb") == Words{"a", "\n", "\n", "b"});
  CHECK(split(kGpt2, "a \n") == Words{"a", " \n"});
  CHECK(split(kGpt2, " ") == Words{" "});
  CHECK(split(kGpt2, "").empty());
  CHECK(split(kCl100k, "a \n \n  b") == Words{"a", " \n \n", " ", " b"});
  CHECK(split(kCl100k, "\tb\n") == Words{"\tb", "\n"});
}

TEST_CASE("Contractions are cut off, in capitals only by the later patterns") {
  CHECK(split(kGpt2, "it's IT'S we'll") == Words{"it", "'s", " IT", "'", "S", " we", "'ll"});
  CHECK(split(kCl100k, "it's IT'S I'VE") == Words{"it", "'s", " IT", "'S", " I", "'VE"});
  CHECK(split(kO200k, "it's IT'S") == Words{"it's", " IT'S"});
  CHECK(split(kGpt2, "'sat 'sat") == Words{"'s", "at", " '", "sat"});
  CHECK(split(kGpt2, "'r'v'l") == Words{"'", "r", "'", "v", "'", "l"});
  CHECK(split(kCl100k, "'\u017Fa") == Words{"'\u017F", "a"});  // the long s counts as s
}

TEST_CASE("Numbers are of any length, of three digits or of one") {
  CHECK(split(kGpt2, "a1234567") == Words{"a", "1234567"});
  CHECK(split(kCl100k, "a1234567") == Words{"a", "123", "456", "7"});
  CHECK(split(kQwen2, "a123") == Words{"a", "1", "2", "3"});
  CHECK(split(kO200k, " 1234") == Words{" ", "123", "4"});
}

TEST_CASE("A sign joins the word after it, line ends join the signs before them") {
  CHECK(split(kGpt2, "(see) x!\n") == Words{"(", "see", ")", " x", "!", "\n"});
  CHECK(split(kCl100k, "(see) x!\r\n\n") == Words{"(see", ")", " x", "!\r\n\n"});
  CHECK(split(kO200k, "a//\nb") == Words{"a", "//\n", "b"});
}

TEST_CASE("GPT-4o cuts where capitals begin") {
  CHECK(split(kO200k, "McDonald HTTPServer x") == Words{"Mc", "Donald", " HTTPServer", " x"});
  // Caseless letters count as both; if no small letter follows, the last of them ends the word.
  CHECK(split(kO200k, "AªBC") == Words{"Aª", "BC"});
  CHECK(split(kO200k, "\u0301AB") == Words{"\u0301", "AB"});
  CHECK(split(kO200k, "\u0301Ab") == Words{"\u0301Ab"});
}

TEST_CASE("The words are those that the regular expressions give") {
  const auto name = GENERATE(as<std::string>{}, "gpt2", "cl100k", "qwen2", "o200k");
  const SplitPattern pattern = *split_pattern_named(name);
  const auto lines = test::golden_bpe("lines.json").get<Words>();
  const auto expected = test::golden_bpe("splits.json").at(name);
  REQUIRE(lines.size() > 400);
  REQUIRE(expected.size() == lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    INFO(name << ", text " << i << ": " << lines[i]);
    std::vector<std::size_t> sizes;
    for (const std::string& word : split(pattern, lines[i])) sizes.push_back(word.size());
    CHECK(sizes == expected[i].get<std::vector<std::size_t>>());
  }
}

TEST_CASE("A pattern is known by its regular expression, in tiktoken's spelling as well") {
  for (const SplitPattern pattern : {kGpt2, kCl100k, kQwen2, kO200k}) {
    CHECK(split_pattern_of(expression_of(pattern)) == pattern);
  }
  CHECK(split_pattern_of(
            R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)") == kGpt2);
  // tiktoken's cl100k since 0.9, for which "\n " at the end of a text is one word.
  CHECK_FALSE(
      split_pattern_of(
          R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)")
          .has_value());
  CHECK_FALSE(split_pattern_of(R"(\s+)").has_value());
  CHECK_FALSE(split_pattern_of("").has_value());
  CHECK_FALSE(split_pattern_named("gpt3").has_value());
}

TEST_CASE("Character classes are those of Unicode 16") {
  const CharacterClasses& classes = CharacterClasses::get();
  CHECK(classes.of(U'a') == CharacterClass::kLower);
  CHECK(classes.of(U'\n') == (CharacterClass::kSpace | CharacterClass::kNewline));
  CHECK(classes.of(0x1C5) == CharacterClass::kUpper);    // a title-case letter
  CHECK(classes.of(0x2167) == CharacterClass::kNumber);  // the Roman numeral eight
  CHECK(classes.of(0x180E) == 0);                        // the Mongolian separator is no longer a space
  CHECK(classes.of(0x85) == CharacterClass::kSpace);
  CHECK(classes.of(0x1C89) == CharacterClass::kUpper);      // new in 16.0
  CHECK(classes.of(0x323AF) == CharacterClass::kCaseless);  // the last ideograph
  CHECK(classes.of(0x323B0) == 0);
  CHECK(classes.of(0x10FFFF) == 0);
}
