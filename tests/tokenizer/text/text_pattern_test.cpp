#include "tokenizer/text/text_pattern.h"

#include "tests/support/catch.h"
#include "tests/support/message_of.h"

using namespace zoo;
using Catch::Contains;

namespace {

using Ranges = std::vector<std::pair<unsigned, unsigned>>;

Ranges found(const std::string& expression, const std::string& text) {
  std::vector<ByteRange> matches;
  TextPattern::regex(expression).find(text, matches);
  Ranges ranges;
  for (const ByteRange& match : matches) ranges.emplace_back(match.begin, match.end);
  return ranges;
}

std::string refusal(const std::string& expression) {
  return test::message_of([&] { TextPattern::regex(expression); });
}

}  // namespace

// Published: https://github.com/kkos/oniguruma/blob/master/doc/RE and tests/interop beside `tokenizers`.
TEST_CASE("Classes are those of Oniguruma") {
  CHECK(found("[[:punct:]]+", "a$+<=>^|~`b") == Ranges{{1, 10}});
  CHECK(found("\\h+", "xfF9g") == Ranges{{1, 4}});
  CHECK(found("\\p{L}+", "a\u1C89 b") == Ranges{{0, 4}, {5, 6}});  // of Unicode 16
  CHECK(found("\\w+", "\u00B2").size() == 1);
  CHECK(found("[\\w]+", "\u00B2").empty());
  CHECK(found("\\w", "\u200D").empty());                   // a joiner
  CHECK(found("\\p{S}", "\U0001F8B5") == Ranges{{0, 4}});  // of Unicode 16
  CHECK(found("[a-z&&[^aeiou]]+", "abcde") == Ranges{{1, 4}});
  CHECK(found("(?i:[ks])+", "kK\u212A\u017F") == Ranges{{0, 7}});
  CHECK(found("^a$", "a\na\r\na") == Ranges{{0, 1}, {5, 6}});
  CHECK(found("a{,2}", "aaa") == Ranges{{0, 2}, {2, 3}});
  CHECK(found("a{1,3}+", "aaaaa") == Ranges{{0, 5}});  // repeats the repetition
}

TEST_CASE("A part of an expression without an equal is named") {
  CHECK_THAT(refusal("(a)\\1"), Contains("\\1"));
  CHECK_THAT(refusal("a(?i)b|c"), Contains("group"));
  CHECK_THAT(refusal("\\p{Emoji}"), Contains("Emoji"));
  CHECK_THAT(refusal("(?i:ss)"), Contains("'ss'"));
  CHECK_THAT(refusal("(?i:\\p{Lu})"), Contains("without regard to case"));
  CHECK_THAT(refusal("a**"), Contains("repetition"));
  CHECK_THAT(refusal("[a"), Contains("without its ]"));
  CHECK_THAT(refusal("(a"), Contains("without its end"));
  CHECK_THAT(refusal("a)"), Contains("closes nothing"));
  CHECK_THAT(refusal("\\"), Contains("at the end"));
  CHECK_THAT(refusal("\xFF"), Contains("UTF-8"));
  CHECK_THAT(refusal("(?:" + std::string(100000, '(')), Contains("nested too deeply"));
}

TEST_CASE("An ordinary expression splits a text of any length") {
  // Of Qwen3.5's kind: alternatives that are no known spelling.
  const TextPattern pattern = TextPattern::regex(
      "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| "
      "?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+");
  std::string text;
  for (int i = 0; i < 3'000'000; ++i) text += "1.2, ";
  std::vector<ByteRange> matches;
  pattern.find(text, matches);
  CHECK(matches.back().end == text.size());
}

TEST_CASE("A match that takes too many steps is refused with the expression") {
  const TextPattern pattern = TextPattern::regex("(a+)+$|(a|aa)+b");
  std::vector<ByteRange> matches;
  const std::string message = test::message_of([&] { pattern.find(std::string(60, 'a') + "c", matches); });
  CHECK_THAT(message, Contains("(a+)+$|(a|aa)+b") && Contains("too many steps"));
}
