#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "data/base/json.h"
#include "tests/data/support.h"
#include "tests/support/temporary_directory.h"

using Catch::Contains;
using zoo::test::message_of;
using zoo::test::TemporaryDirectory;
using zoo::test::write_bytes;

TEST_CASE("read_json says line and column of a syntax error") {
  const TemporaryDirectory folder;
  const auto place = [&](const char* text) {
    const auto path = write_bytes(folder / "config.json", text);
    const std::string message = message_of([&] { zoo::read_json(path); });
    CHECK_THAT(message, Contains("config.json': not valid JSON at "));
    return message.substr(message.find("line "));
  };
  CHECK(place("x{}") == "line 1, column 1");
  CHECK(place("{\"a\": 1,, \"b\": 2}") == "line 1, column 9");
  CHECK(place("{\n  \"a\": 1,\n  \"b\": ?\n}\n") == "line 3, column 8");
  CHECK(place("{\n?}") == "line 2, column 1");
  CHECK(place("\n?") == "line 2, column 1");
  CHECK(place("{\"a\": 1") == "line 1, column 8");
  CHECK(place("{\"a\":\n") == "line 2, column 1");
  CHECK(place("") == "line 1, column 1");
}

TEST_CASE("A file that is no file, or a giant, is refused at once") {
  const TemporaryDirectory folder;
  const auto pipe = folder / "pipe.json", giant = folder / "giant.json";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THAT(message_of([&] { zoo::read_json(pipe); }),
             Contains("pipe.json") && Contains("not a regular file"));
  write_bytes(giant, "{}");
  std::filesystem::resize_file(giant, std::uintmax_t{1} << 32);
  CHECK_THAT(message_of([&] { zoo::read_json(giant); }),
             Contains("giant.json") && Contains("4294967296 bytes; expected at most 67108864"));
  CHECK_THAT(message_of([&] { zoo::read_json(giant, zoo::kMostVocabulary); }), Contains("at most 268435456"));
}

TEST_CASE("An object keeps the order of its keys, of which the last value counts") {
  const nlohmann::ordered_json object = zoo::parse_ordered_json(R"({"b": 1, "a": [2, {"c": {}}], "b": 3})");
  CHECK(zoo::json_text(object) == R"({"b":3,"a":[2,{"c":{}}]})");
  CHECK(zoo::json_text(zoo::parse_ordered_json("[]")) == "[]");
  CHECK(zoo::json_text(zoo::parse_ordered_json("-1.5")) == "-1.5");
  for (const char* text : {"", "{", "[1", R"({"a": 1e999})", R"({"a" 1})", "1 2"})
    CHECK(zoo::parse_ordered_json(text).is_discarded());
}

TEST_CASE("An object of very many keys is read in linear time") {
  std::string text = "{";
  for (int i = 0; i < 466026; ++i) text += "\"" + std::to_string(i) + "\":1,";
  text.back() = '}';
  CHECK(zoo::parse_ordered_json(text).size() == 466026);
}

TEST_CASE("Bytes that are not UTF-8 are written as U+FFFD") {
  CHECK(zoo::json_text(nlohmann::json{{"text", "caf\xC3 x"}}) == "{\"text\":\"caf\uFFFD x\"}");
  CHECK(zoo::json_text(nlohmann::ordered_json{{"b", "\xFF"}, {"a", 1}}) == "{\"b\":\"\uFFFD\",\"a\":1}");
}

TEST_CASE("read_json refuses what is no object, and numbers that no double holds") {
  const TemporaryDirectory folder;
  const auto error = [&](const char* text) {
    const auto path = write_bytes(folder / "a.json", text);
    return message_of([&] { zoo::read_json(path); });
  };
  CHECK_THAT(error("[1, 2]"), Contains("a.json': expected a JSON object, found array"));
  CHECK_THAT(error("{\"a\": 1e999}"), Contains("a.json': ") && Contains("1e999"));
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  CHECK_THAT(error(("{\"a\": " + deep + "}").c_str()),
             Contains("a.json': ") && Contains("nested too deeply"));
  CHECK(zoo::parse_json(deep).is_discarded());
  CHECK(zoo::parse_json("[\"[[[[\\\"[\", 1]").is_array());
  CHECK_THAT(message_of([&] { zoo::read_json(folder / "none.json"); }),
             Contains("none.json") && Contains("No such file"));
}

TEST_CASE("write_json indents by two and ends with a newline") {
  const TemporaryDirectory folder;
  zoo::write_json(folder / "a.json", {{"a", 1}});
  CHECK(zoo::test::read_bytes(folder / "a.json") == "{\n  \"a\": 1\n}\n");
  CHECK(zoo::read_json(folder / "a.json") == nlohmann::json{{"a", 1}});
}
