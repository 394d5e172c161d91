#include "data/examples/sentence_file.h"

#include "data/base/error.h"
#include "tests/support/catch.h"

using namespace zoo;

namespace {

using Texts = std::vector<std::string>;

std::vector<SentenceExample> parsed(const std::string& text, const std::string& name) {
  FileColumns names;
  return parse_sentences(text, name, names);
}

std::string refusal(const std::string& text, const std::string& name) {
  try {
    parsed(text, name);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("anchors, positives and negatives of tables and objects") {
  CHECK(parsed("a\tb\nc\td\n", "x.tsv")[1].texts == Texts{"c", "d"});
  CHECK(parsed("a\tb\tc\td\te\n", "x.tsv")[0].texts == Texts{"a", "b", "c", "d", "e"});
  const auto named = parsed("negative_1\tpositive\tanchor\tnegative\nn\tp\ta\tm\no\tq\tb\t\n", "x.tsv");
  CHECK(named[0].texts == Texts{"a", "p", "m", "n"});
  CHECK(named[1].texts == Texts{"b", "q", "o"});
  CHECK(parsed("negative,positive,anchor\n\"n,n\",p,a\n", "x.csv")[0].texts == Texts{"a", "p", "n,n"});
  const auto objects = parsed(
      "{\"query\": \"a\", \"positive\": \"b\", \"negatives\": [\"c\", \"d\"]}\n"
      "{\"query\": \"e\", \"positive\": \"f\", \"negative\": \"g\"}\n",
      "x.jsonl");
  CHECK(objects[0].texts == Texts{"a", "b", "c", "d"});
  CHECK(objects[1].texts == Texts{"e", "f", "g"});
  CHECK(objects[1].line == 2);
  CHECK_FALSE(objects[0].score);
}

TEST_CASE("a query of one file renames nothing in the next") {
  zoo::FileColumns names;
  CHECK(zoo::parse_sentences("query\tpositive\na\tb\n", "x.tsv", names)[0].texts == Texts{"a", "b"});
  CHECK(zoo::parse_sentences("c\td\n", "y.tsv", names)[0].texts == Texts{"c", "d"});
}

TEST_CASE("pairs with a score") {
  CHECK(parsed("a\tb\t-0.5\n", "x.tsv")[0].score == -0.5);
  CHECK(parsed("score\tsentence2\tsentence1\n3\tb\ta\n", "x.tsv")[0].texts == Texts{"a", "b"});
  CHECK(parsed(R"({"sentence1": "a", "sentence2": "b", "score": 2})", "x.jsonl")[0].score == 2.0);
  CHECK(refusal("a\tb\t1\nc\td\te\n", "x.tsv") == "x.tsv, line 2: 'score' must be a number, found 'e'");
  CHECK(refusal("a\tb\t1\nc\td\tnan\n", "x.tsv") == "x.tsv, line 2: 'score' must be a number, found 'nan'");
}

TEST_CASE("what is no example is refused with its line") {
  CHECK(refusal(R"({"anchor": "a", "positive": "b", "negative": ["c", ""]})", "x.jsonl") ==
        "x.jsonl, line 1: negatives must be texts, found \"\"");
  CHECK(refusal("{\"anchor\": \"a\", \"positive\": \"b\"}\n{\"sentence1\": \"a\"}\n", "x.jsonl") ==
        "x.jsonl, line 2: 'anchor' is missing or empty");
  CHECK_THAT(refusal("", "x.jsonl"), Catch::Contains("holds no example"));
  CHECK_THAT(refusal("a\n", "x.tsv"), Catch::Contains("expected the columns anchor, positive, negative"));
}
