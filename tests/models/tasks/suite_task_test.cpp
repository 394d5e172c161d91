#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "models/tasks/suite/python_random.h"
#include "models/tasks/suite/suite.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace zoo {
namespace {

using Catch::Contains;
using Json = nlohmann::ordered_json;

// A task of multiple choice on three documents, with these keys instead of its own.
SuiteTask read_with(const Json& keys, const SuiteOptions& options = {}) {
  const test::TemporaryDirectory folder;
  write_file(folder.path() / "data.jsonl", R"({"q": "a", "options": ["b", "c"], "key": "Y"}
{"q": "d", "options": ["e", "f"], "key": "X"}
{"q": "g", "options": ["h", "i"], "key": "Y"}
)");
  Json all = Json::parse(R"({"task": "letters", "output_type": "multiple_choice", "data": "data.jsonl",
    "doc_to_text": "Q: {{q}}\n", "doc_to_target": "{{['X', 'Y'].index(key)}}", "doc_to_choice": "options"})");
  if (!keys.is_null()) all.update(keys);
  return read_suite_task(folder.path() / "task.json", all, options);
}

std::vector<std::string> contexts_with(const Json& keys, const SuiteOptions& options = {}) {
  std::vector<std::string> contexts;
  for (const SuiteQuestion& question : read_with(keys, options).questions)
    contexts.push_back(question.contexts[0]);
  return contexts;
}

TEST_CASE("The harness' random samples are CPython's") {
  // Python: random.Random(1234), then sample(range(100), 3) and so on.
  std::mt19937 random = python_random(1234);
  CHECK(python_sample(random, 100, 3) == std::vector<std::size_t>{99, 56, 14});
  CHECK(python_sample(random, 10, 4) == std::vector<std::size_t>{0, 1, 9, 5});
  CHECK(python_sample(random, 5000, 9) ==
        std::vector<std::size_t>{687, 806, 2905, 1939, 142, 252, 129, 2835, 3966});
  CHECK(python_sample(random, 30, 7) == std::vector<std::size_t>{19, 14, 4, 2, 5, 22, 3});
  std::mt19937 other = python_random(0);
  CHECK(python_sample(other, 60, 2) == std::vector<std::size_t>{54, 24});
}

TEST_CASE("A suite's task becomes contexts, continuations and right choices") {
  const SuiteTask task = read_with({});
  REQUIRE(task.questions.size() == 3);
  const SuiteQuestion& question = task.questions[0];
  CHECK(question.contexts == std::vector<std::string>{"Q: a\n", "Q: a\n"});
  CHECK(question.continuations == std::vector<std::string>{" b", " c"});
  CHECK(question.choices == std::vector<std::string>{"b", "c"});
  CHECK(question.right == 1);
  CHECK(task.metrics == std::vector<std::string>{"acc", "acc_norm"});
  CHECK(read_with({}, {.limit = 2}).questions.size() == 2);
}

TEST_CASE("Examples of a suite's task") {
  // Of their own split the question itself is left out.
  const Json first{{"fewshot_config", {{"sampler", "first_n"}}}, {"num_fewshot", 1}, {"description", "D.\n"}};
  CHECK(contexts_with(first) == std::vector<std::string>{"D.\nQ: d\n e\n\nQ: a\n", "D.\nQ: a\n c\n\nQ: d\n",
                                                         "D.\nQ: a\n c\n\nQ: g\n"});
  // Python: random.Random(1234).sample(documents, 3) for each question, without the question, the first two.
  const std::vector<std::string> drawn = contexts_with({{"num_fewshot", 2}});
  CHECK(drawn[0] == "Q: d\n e\n\nQ: g\n i\n\nQ: a\n");
  CHECK(drawn[2] == "Q: a\n c\n\nQ: d\n e\n\nQ: g\n");
  CHECK(contexts_with({{"num_fewshot", 2}}, {.num_fewshot = 0})[0] == "Q: a\n");
  CHECK(contexts_with({{"num_fewshot", 0}}, {.num_fewshot = 2})[0] == "Q: a\n");
}

TEST_CASE("A task's templates keep white space, as jinja2 does by default") {
  CHECK(contexts_with({{"doc_to_text", "  {% if q %}\n  {{q}}{# note #}\n{% endif %}\n"}})[0] ==
        "  \n  a\n\n");
  CHECK(contexts_with({{"doc_to_text", "50\\%} {%+ if q %}\n{{q}}{% endif %}"}})[0] == "50\\%} \na");
  CHECK(contexts_with({{"doc_to_text", "x {%- if q -%} {{- q }} {%- endif %} y"}})[0] == "xa y");
  CHECK_THROWS_WITH(read_with({{"doc_to_text", "{{q}}{{other}}"}}),
                    Contains("question 1") && Contains("'other' is undefined"));
  CHECK_THROWS_WITH(read_with({{"doc_to_text", "{% if q.other %}{% endif %}"}}), Contains("is undefined"));
  CHECK(contexts_with({{"doc_to_text", "{{other|default('z')}}{{'no' if other is undefined}}"}})[0] == "zno");
}

// The expected texts are those of Python's re with the harness' exact_match_hf_evaluate() and RegexFilter.
TEST_CASE("Written answers are compared as the harness compares them") {
  const MatchRules gsm8k{.regexes_to_ignore = {python_pattern(","), python_pattern("\\$"),
                                               python_pattern("(?s).*#### "), python_pattern("\\.$")},
                         .ignore_case = true};
  CHECK(gsm8k.match("So 1,000 is\nit.\n#### $1,234.", {"no", "1234"}));
  CHECK(gsm8k.match("12.\n", {"12\n"}));
  CHECK_FALSE(gsm8k.match("12.\n", {"12"}));
  const MatchRules plain{.ignore_case = true, .ignore_punctuation = true, .ignore_numbers = true};
  CHECK(plain.match("Ünïcode, ÀB-1!", {"ünïcode àb"}));
  CHECK_FALSE(MatchRules().match("A", {"a"}));
  CHECK(MatchRules{.regexes_to_ignore = {python_pattern("[[&]")}}.match("[a]&b", {"a]b"}));
  CHECK_FALSE(MatchRules{.regexes_to_ignore = {python_pattern("a.b")}}.match("a\nb", {""}));
  CHECK(MatchRules{.regexes_to_ignore = {python_pattern("(?s)a.b")}}.match("a\nb", {""}));

  const auto takes = [](const char* expression, std::int64_t select, const std::string& answer,
                        const std::string& expected) {
    MatchRules rules;
    rules.filters.push_back({.pattern = python_pattern(expression), .group_select = select});
    return rules.match(answer, {expected});
  };
  CHECK(takes("#### (\\-?[0-9\\.\\,]+)", 0, "#### 1, so #### -2.5", "1,"));
  CHECK(takes("#### (\\-?[0-9\\.\\,]+)", 0, "none", "[invalid]"));
  CHECK(takes("(-?[$0-9.,]{2,})|(-?[0-9]+)", -1, "a $1,0 b 7.", "7."));
  CHECK(takes("(-?[$0-9.,]{2,})|(-?[0-9]+)", -1, "x 5 y", "5"));
  CHECK(takes("answer is (\\([A-Z]\\))?", 0, "the answer is (B) ", "(B)"));
  CHECK(takes("answer is( \\([A-Z]\\))?", 0, "the answer is", ""));
  CHECK(takes("\\([A-Z]\\)", 1, "(A) (B) (C)", "(B)"));
  CHECK_THROWS_WITH(takes("[0-9]", 2, "1", ""), Contains("group_select is 2"));
  CHECK_THROWS_WITH(takes("x*", 0, "y", ""), Contains("matches the empty text"));
  for (const char* other : {"\\w+", "\\bno", "(?P<x>a)", "(a)\\1", "(?i:é)"})
    CHECK_THROWS_AS(python_pattern(other), Error);
}

TEST_CASE("What a suite's task cannot have is refused by name") {
  CHECK_THROWS_WITH(read_with({{"process_docs", "f"}}), Contains("'process_docs' is not supported"));
  CHECK_THROWS_WITH(read_with({{"doc_to_target", 2}}),
                    Contains("question 1") && Contains("none of the 2 choices"));
  CHECK_THROWS_WITH(read_with({{"doc_to_target", "{{key}}"}}), Contains("gives \"Y\""));
  CHECK_THROWS_WITH(read_with({{"doc_to_choice", "['x', 'y']"}}), Contains("expected a list"));
  CHECK_THROWS_WITH(read_with({{"num_fewshot", 3}}), Contains("num_fewshot"));
  CHECK_THROWS_WITH(read_with({{"num_fewshot", "two"}}), Contains("differs in kind"));
  CHECK_THROWS_AS(read_with({{"data", "missing.jsonl"}}), Error);
}

}  // namespace
}  // namespace zoo
