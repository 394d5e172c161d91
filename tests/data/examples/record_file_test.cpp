#include "data/examples/record_file.h"

#include "data/examples/question_file.h"
#include "data/examples/tagged_file.h"
#include "tests/support/catch.h"
#include "tests/support/message_of.h"

using zoo::parse_questions;
using zoo::parse_records;
using zoo::parse_tagged;
using zoo::test::message_of;

namespace {

const zoo::Columns kPairs{{"source", "target"}, {"note"}};

std::string fault(const std::string& text, const std::string& name) {
  return message_of([&] { parse_records(text, name, kPairs); });
}

}  // namespace

TEST_CASE("A table without a header has its columns in their order, one with a header in the header's") {
  const auto plain = parse_records("a\tb\r\nc\td\n\n", "t.tsv", kPairs);
  REQUIRE(plain.size() == 2);
  CHECK(plain[1].line == 2);
  CHECK(plain[0].fields == std::vector<std::string>{"a", "b", ""});
  const auto named = parse_records("target\tid\tsource\nb\t7\ta\n", "t.tsv", kPairs);
  REQUIRE(named.size() == 1);
  CHECK(named[0].line == 2);
  CHECK(named[0].fields == std::vector<std::string>{"a", "b", ""});
}

TEST_CASE("Two columns of one name by --columns are refused") {
  zoo::FileColumns names{.own = {{"body", "source"}}};
  CHECK_THAT(message_of([&] { parse_records("source\ttarget\tbody\na\tb\tc\n", "t.tsv", kPairs, names); }),
             Catch::Contains("t.tsv, line 1: two columns are 'source' by"));
}

TEST_CASE("A table with commas is RFC 4180's: quoted fields hold commas, quotes and line breaks") {
  const auto records = parse_records(
      "target,source\r\n\"a \"\"b\"\", c\",\"two\nlines\"\r\nd,e\r\n\"f\",\"g\"\r\n\r\n", "t.csv", kPairs);
  REQUIRE(records.size() == 3);
  CHECK(records[0].fields == std::vector<std::string>{"two\nlines", "a \"b\", c", ""});
  CHECK(records[1].fields == std::vector<std::string>{"e", "d", ""});
  CHECK(records[2].fields == std::vector<std::string>{"g", "f", ""});
  CHECK(std::vector{records[0].line, records[1].line, records[2].line} == std::vector<std::int64_t>{2, 4, 5});
  CHECK(parse_records("a,b,\nc,\"d\",", "t.csv", kPairs)[1].fields == std::vector<std::string>{"c", "d", ""});
  CHECK_THAT(fault("a,b\nc,\"d\n", "t.csv"), Catch::Contains("t.csv, line 2: a quote is not closed"));
  CHECK_THAT(fault("a,b\n\"c\"d,e\n", "t.csv"), Catch::Contains("t.csv, line 2: expected a comma"));
  CHECK_THAT(fault("a,b\nc,d,e,f\n", "t.csv"), Catch::Contains("t.csv, line 2: expected 2 columns"));
  CHECK_THAT(fault("a\tb\n", "t.csv"), Catch::Contains("note with commas between them"));
}

TEST_CASE("A .jsonl file holds an object a line, whose labels may be numbers and truth values") {
  const auto records =
      parse_records("{\"text\": \"a\\tb\", \"label\": 3}\n{\"label\": true, \"text\": \"x\", \"note\": null}",
                    "t.jsonl", {{"text", "label"}, {"note"}});
  REQUIRE(records.size() == 2);
  CHECK(records[0].fields == std::vector<std::string>{"a\tb", "3", ""});
  CHECK(records[1].fields == std::vector<std::string>{"x", "true", ""});
}

TEST_CASE("Errors in a table name file and line") {
  CHECK_THAT(fault("a\tb\nc\td\te\n", "t.tsv"), Catch::Contains("t.tsv, line 2: expected 2 columns"));
  CHECK_THAT(fault("a\n", "t.tsv"), Catch::Contains("t.tsv, line 1: expected the columns source, target"));
  CHECK_THAT(fault("a\tb\n\tc\n", "t.tsv"), Catch::Contains("t.tsv, line 2: 'source' is missing or empty"));
  CHECK_THAT(fault("source\ttarget\n", "t.tsv"), Catch::Contains("t.tsv: holds no example"));
  CHECK_THAT(fault("\n\n", "t.tsv"), Catch::Contains("t.tsv: holds no example"));
  CHECK_THAT(fault("{\"source\": \"a\", \"target\": \"b\"}\n{\"source\"\n", "t.jsonl"),
             Catch::Contains("t.jsonl, line 2: expected a JSON object"));
  CHECK_THAT(fault("{\"source\": \"a\", \"target\": \"b\"}\n{\"source\": \"\xff\"}\n", "t.jsonl"),
             Catch::Contains("t.jsonl, line 2: invalid UTF-8 at its byte 12"));
  CHECK_THAT(fault("{\"source\": [1], \"target\": \"b\"}", "t.jsonl"),
             Catch::Contains("'source' must be a text"));
  CHECK_THAT(fault("{\"source\": \"a\", \"target\": 3}", "t.jsonl"),
             Catch::Contains("line 1: 'target' must be a text, found number"));
  CHECK_THAT(fault("{\"source\": \"a\"}", "t.jsonl"), Catch::Contains("line 1: 'target' is missing"));
}

TEST_CASE("A first line of other names is no example, and --columns gives them") {
  const zoo::Columns columns{{"text", "label"}, {"text_pair"}};
  const std::string pairs = "sentence1\tsentence2\tlabel\na\tb\tc\n";
  CHECK_THAT(message_of([&] { parse_records(pairs, "t.tsv", columns); }),
             Catch::Contains("t.tsv, line 1: 'sentence1\tsentence2\tlabel' looks like") &&
                 Catch::Contains("'columns' text=sentence1,text_pair=sentence2,label=label"));
  CHECK_THAT(message_of([&] { parse_records("review_text\tsentiment\na\tb\n", "t.tsv", columns); }),
             Catch::Contains("'columns' text=review_text,label=sentiment"));
  CHECK_THAT(message_of([&] { parse_records("id,sentiment,review\n1,a,b\n", "t.csv", columns); }),
             Catch::Contains("'columns' label=sentiment,text=review,"));
  // Words of no list, by their label: it alone stands once.
  CHECK_THAT(message_of([&] { parse_records("body\ttoxic\na b\t0\nc\t1\nd\t0\ne\t1\n", "t.tsv", columns); }),
             Catch::Contains("t.tsv, line 1: 'body\ttoxic' looks like the names of columns") &&
                 Catch::Contains("'columns' text=body,label=toxic,"));
  for (const std::string table : {"body\tnoun\na\tverb\nb\tnoun\nc\tverb\n",
                                  "body\tnoun\na\tverb\nb\tadverb\n", "a body\tnoun\na\tverb\nb\tverb\n"})
    CHECK(parse_records(table, "t.tsv", columns).size() >= 3);
  auto names = zoo::FileColumns::read("text=sentence1,text_pair=sentence2,label=label");
  const auto records = parse_records(pairs, "t.tsv", columns, names);
  REQUIRE(records.size() == 1);
  CHECK(records[0].fields == std::vector<std::string>{"a", "c", "b"});
  const auto objects =
      parse_records("{\"sentence1\": \"a\", \"sentence2\": \"b\", \"label\": 1}", "t.jsonl", columns, names);
  CHECK(objects[0].fields == std::vector<std::string>{"a", "1", "b"});
  // Examples, though of single words.
  for (const std::string line :
       {"good\tpos", "what is the label\tquestion", "label\tLabel: a word", "Text\tnoun"})
    CHECK(parse_records(line, "t.tsv", columns).size() == 1);
  CHECK_THAT(message_of([] { parse_tagged("token\tner_tag\nAnna\tB-PER\n", "n.tsv"); }),
             Catch::Contains("n.tsv, line 1: 'token\tner_tag' looks like the names of columns"));
  for (const char* wrong : {"text", "=a", "text=", "text=a,label=a"})
    CHECK_THAT(message_of([&] { zoo::FileColumns::read(wrong); }),
               Catch::Contains("'columns': expected OURS=THEIRS"));
  names = zoo::FileColumns::read("txt=a");
  CHECK_THAT(message_of([&] { parse_records("{\"a\": \"b\"}", "t.jsonl", columns, names); }),
             Catch::Contains("'columns': 'txt' is no column"));
}

TEST_CASE("Names that nothing reads are noted, and an error if they resemble one that is missing") {
  const zoo::Columns columns{{"text", "label"}, {"text_pair"}};
  zoo::FileColumns names;
  parse_records("{\"text\": \"a\", \"label\": 1, \"idx\": 3}\n{\"text\": \"a\", \"label\": 1, \"text2\": 3}",
                "t.jsonl", columns, names);
  parse_records("label\ttext\tsource\na\tb\tc\n", "t.tsv", columns, names);
  CHECK(names.ignored == std::set<std::string>{"idx", "source", "text2"});
  CHECK_THAT(message_of([&] { parse_records("{\"txet\": \"a\", \"label\": 1}", "t.jsonl", columns); }),
             Catch::Contains("t.jsonl, line 1: unknown name 'txet'; did you mean 'text'?"));
  CHECK_THAT(message_of([&] { parse_records("text\tlabel\ttext_pairs\na\tb\tc\n", "t.tsv", columns); }),
             Catch::Contains("t.tsv, line 1: unknown name 'text_pairs'; did you mean 'text_pair'?"));
  CHECK_THAT(message_of([] { parse_tagged("{\"tokens\": [\"a\"], \"label\": [\"X\"]}", "n.jsonl"); }),
             Catch::Contains("unknown name 'label'; did you mean 'labels'?"));
  CHECK_THAT(message_of([] { parse_questions("{\"question\": \"q\", \"contxt\": \"c\"}", "q.jsonl"); }),
             Catch::Contains("unknown name 'contxt'; did you mean 'context'?"));
}

TEST_CASE("A file that is not UTF-8 is refused with the place") {
  const std::string place = "invalid UTF-8 in t.tsv at byte 2 (line 1)";
  CHECK(fault("a\t\xE9\n", "t.tsv") == place);
  CHECK(message_of([] { parse_tagged("a\t\xE9\n", "t.tsv"); }) == place);
  CHECK(message_of([] { parse_questions("a\t\xE9\tb\t9\n", "t.tsv"); }) == place);
  CHECK_THAT(message_of([] { parse_questions("{\xE9}", "t.jsonl"); }), Catch::StartsWith("invalid UTF-8"));
}

TEST_CASE("Sentences end at empty lines, and their words have one label each") {
  const auto sentences = parse_tagged("\nAnna\tB-PER\nruns\tO\n\n\nhome\tO\n", "n.tsv");
  REQUIRE(sentences.size() == 2);
  CHECK(sentences[0].words == std::vector<std::string>{"Anna", "runs"});
  CHECK(sentences[0].tags == std::vector<std::string>{"B-PER", "O"});
  CHECK(sentences[1].lines == std::vector<std::int64_t>{6});
  const auto objects = parse_tagged("{\"tokens\": [\"a\"], \"labels\": [\"X\"]}", "n.jsonl");
  CHECK(objects[0].tags == std::vector<std::string>{"X"});
  const auto numbers = parse_tagged("{\"tokens\": [\"in\", 1611], \"labels\": [0, 12]}", "n.jsonl");
  CHECK(numbers[0].words == std::vector<std::string>{"in", "1611"});
  CHECK(numbers[0].tags == std::vector<std::string>{"0", "12"});
  CHECK_THAT(message_of([] { parse_tagged("a\tX\nb\n", "n.tsv"); }),
             Catch::Contains("n.tsv, line 2: expected a word"));
  CHECK_THAT(message_of([] { parse_tagged("{\"tokens\": [\"a\"], \"labels\": [\"X\", \"Y\"]}", "n.jsonl"); }),
             Catch::Contains("n.jsonl, line 1: 1 tokens have 2 labels"));
}

TEST_CASE(
    "An answer is at the file's position, counted in characters, or at its first match in the context") {
  const auto found =
      parse_questions("{\"question\": \"q\", \"context\": \"\xC3\xA9 x x\", \"answer\": \"x\"}", "q.jsonl");
  CHECK(found[0].answer == zoo::ByteRange{3, 4});
  const auto placed = parse_questions(
      "{\"question\": \"q\", \"context\": \"\xC3\xA9 x x\", \"answers\": {\"text\": [\"x\"], "
      "\"answer_start\": [4]}}",
      "q.jsonl");
  CHECK(placed[0].answer == zoo::ByteRange{5, 6});
  const auto spaced =
      parse_questions("{\"question\": \"q\", \"context\": \"a b c\", \"answer\": \" b \"}", "q.jsonl");
  CHECK(spaced[0].answer == zoo::ByteRange{2, 3});
  const auto none = parse_questions("q\tc\t\n", "q.tsv");
  CHECK(none[0].answer == zoo::ByteRange{0, 0});
  CHECK_THAT(message_of([] { parse_questions("q\tabc\tx\n", "q.tsv"); }),
             Catch::Contains("q.tsv, line 1: the context does not contain the answer 'x'"));
  CHECK_THAT(message_of([] { parse_questions("q\tabc\tc\t1\n", "q.tsv"); }),
             Catch::Contains("at character 1"));
}
