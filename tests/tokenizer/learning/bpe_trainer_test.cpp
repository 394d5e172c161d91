#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/bpe_support.h"
#include "tokenizer/learning/subword_trainers.h"

using namespace zoo;
using nlohmann::json;
using test::message_of;

namespace {

using Tokens = std::vector<std::string>;

LearntMerges learn(const std::vector<std::pair<std::string, int>>& words,
                   const MergeTrainerOptions& options) {
  WordCounts counts;
  for (const auto& [word, count] : words) counts[word] += count;
  return learn_merges(counts, options);
}

std::string corpus() {
  return test::read_bytes(std::filesystem::path(ZOO_SOURCE_DIR) / "tests" / "golden" / "bpe" / "corpus.txt");
}

using Merges = std::vector<std::pair<std::string, std::string>>;

Merges merges_of(const LearntMerges& learnt) {
  Merges merges;
  for (const auto& [left, right] : learnt.merges) {
    merges.emplace_back(learnt.tokens.at(static_cast<std::size_t>(left)),
                        learnt.tokens.at(static_cast<std::size_t>(right)));
  }
  return merges;
}

}  // namespace

TEST_CASE("The most frequent pair becomes a token, again and again") {
  // Sennrich et al.'s words. Pairs: es 9, st 9, we 8, lo 7, ow 7, …. es and st tie: the lower ids win; then
  // (es)t 9; lo 7 (ids of l, o are below those of o, w), (lo)w 7; (n)e 6 before (e)w and (w)(est).
  const auto learnt = learn({{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}}, {.vocab_size = 17});
  CHECK(learnt.tokens == Tokens{"d", "e", "i", "l", "n", "o", "r", "s", "t", "w", "es", "est", "lo", "low",
                                "ew", "new", "newest"});
  CHECK(merges_of(learnt) ==
        Merges{{"e", "s"}, {"es", "t"}, {"l", "o"}, {"lo", "w"}, {"e", "w"}, {"n", "ew"}, {"new", "est"}});
}

TEST_CASE("Special tokens come first, then characters by code point, then what is merged") {
  const auto learnt =
      learn({{"ba", 2}}, {.vocab_size = 6, .special_tokens = {"<s>", "a"}, .initial_alphabet = U"z"});
  CHECK(learnt.tokens == Tokens{"<s>", "a", "b", "z", "ba"});
}

TEST_CASE("A run of one character is merged from the left") {
  // aa aa a: (aa, a) and (aa, aa) both occur three times; the lower id of a wins.
  const auto learnt = learn({{"aaaaa", 3}}, {.vocab_size = 10});
  CHECK(merges_of(learnt) == Merges{{"a", "a"}, {"aa", "a"}, {"aa", "aaa"}});
}

TEST_CASE("Pairs rarer than min_frequency are not merged") {
  const std::vector<std::pair<std::string, int>> words = {{"ab", 5}, {"cd", 4}};
  CHECK(learn(words, {.min_frequency = 5}).tokens == Tokens{"a", "b", "c", "d", "ab"});
  CHECK(learn(words, {.min_frequency = 6}).tokens == Tokens{"a", "b", "c", "d"});
  CHECK(learn(words, {.min_frequency = 0}).tokens == Tokens{"a", "b", "c", "d", "ab", "cd"});
}

TEST_CASE("Only the most frequent characters are kept, and the others are left out of words") {
  const auto learnt = learn({{"axb", 5}, {"y", 4}}, {.limit_alphabet = 2});
  CHECK(learnt.tokens == Tokens{"a", "b", "ab"});  // x is as frequent but comes later
}

TEST_CASE("A prefix marks what does not begin a word") {
  const auto learnt = learn({{"aba", 5}, {"ba", 4}}, {.continuing_subword_prefix = "##"});
  // ##b+##a occurs 5 times, like a+##b: the lower ids win, a's.
  CHECK(learnt.tokens == Tokens{"a", "b", "##a", "##b", "ab", "aba", "ba"});
}

TEST_CASE("A vocabulary that has no room for its characters is an error") {
  CHECK(message_of([] {
          learn({{"abc", 1}}, {.vocab_size = 3, .special_tokens = {"<s>"}});
        }) == "vocab_size 3 has no room for the 1 special tokens and 3 characters: expected 4 or more");
  CHECK_NOTHROW(learn({{"abc", 1}}, {.vocab_size = 4, .special_tokens = {"<s>"}}));
  CHECK(message_of([] { train_bpe("abc", {.vocab_size = 256}); }) ==
        "vocab_size 256 has no room for the 1 special tokens and 256 characters: expected 257 or more");
}

TEST_CASE("The same is learnt as by the tokenizers package") {
  const std::string text = corpus();
  const auto check = [&](const char* name, const BpeTrainerOptions& options) {
    INFO(name);
    const auto learnt = train_bpe(text, options);
    const json expected = test::golden_bpe(name);
    CHECK(static_cast<std::size_t>(learnt.tokens.size()) == expected.at("vocab").size());
    for (std::size_t id = 0; id < learnt.tokens.size(); ++id) {
      REQUIRE(expected.at("vocab").value(learnt.tokens[id], -1) == static_cast<int>(id));
    }
    CHECK(merges_of(learnt) == expected.at("merges").get<Merges>());
  };
  check("trained-gpt2.json", {.vocab_size = 700, .min_frequency = 2});
  check("trained-cl100k.json", {.vocab_size = 2000, .min_frequency = 0, .pattern = SplitPattern::cl100k});
}

TEST_CASE("Text that is not UTF-8 is not learnt from") {
  CHECK(message_of([] { train_bpe("ab\n\xFF", {.vocab_size = 300}); }) ==
        "invalid UTF-8 in the training text at byte 3 (line 2)");
}

TEST_CASE("A text without a pair, or none at all, is learnt as its bytes") {
  for (const char* text : {"", "\n", "a"}) CHECK(train_bpe(text, {.vocab_size = 300}).tokens.size() == 257);
}

TEST_CASE("Progress reaches the end of the text and the size of the vocabulary") {
  std::vector<std::pair<std::string, std::int64_t>> last;
  train_bpe("ab ab\nab", {.vocab_size = 259,
                          .min_frequency = 1,
                          .on_progress = [&](std::string_view unit, std::int64_t done, std::int64_t total) {
                            CHECK(done <= total);
                            if (last.empty() || last.back().first != unit) last.emplace_back(unit, 0);
                            CHECK(done > last.back().second);
                            last.back().second = done;
                          }});
  CHECK(last == decltype(last){{"bytes", 8}, {"tokens", 259}});
}

TEST_CASE("The classic files and tokenizer.json hold the same") {
  const test::TemporaryDirectory directory;
  const BpeTrainerOptions options{.vocab_size = 259, .special_tokens = {"<s>", "</s>"}};
  save_bpe(train_bpe("ab ab\nab é", options), options, directory.path());
  const json tokenizer = json::parse(test::read_bytes(directory / "tokenizer.json"));
  CHECK(json::parse(test::read_bytes(directory / "vocab.json")) == tokenizer.at("model").at("vocab"));
  CHECK(test::read_bytes(directory / "merges.txt") == "#version: 0.2\na b\n");
  CHECK(tokenizer.at("model").at("merges").get<Merges>() == Merges{{"a", "b"}});
  CHECK(tokenizer.at("model").at("vocab").at("ab") == 258);
  CHECK(tokenizer.at("added_tokens").size() == 2);
  CHECK(tokenizer.at("added_tokens")[1].at("content") == "</s>");
  CHECK(tokenizer.at("added_tokens")[1].at("id") == 1);
  CHECK(json::parse(test::read_bytes(directory / "tokenizer_config.json")).at("eos_token") == "<s>");
}
