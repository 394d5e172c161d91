#include "tokenizer/chat/tool_calls.h"

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tokenizer/chat/chat_format.h"
#include "tokenizer/constraint/byte_automaton.h"

using namespace zoo;

namespace {

// As Hermes' and Qwen's templates write calls, with an id as Mistral's.
ToolCallFormat marked() {
  ToolCallFormat format;
  format.begin = "<call>{\"name\": \"";
  format.middle = "\", \"arguments\": ";
  format.between = ", \"id\": \"\1\"}</call>\n<call>{\"name\": \"";
  format.end = ", \"id\": \"\1\"}</call>";
  return format;
}

// All pieces as one text, with what they are.
std::string read(const ToolCallFormat& format, const std::string& text, std::size_t step) {
  ToolCallReader reader(format);
  std::string found;
  ToolCallPiece before{.call = 99};
  const auto add = [&](const std::vector<ToolCallPiece>& pieces) {
    for (const ToolCallPiece& piece : pieces) {
      const bool same = piece.kind == before.kind && piece.call == before.call;
      if (!same)
        found += "|" + std::string(1, "tna"[static_cast<int>(piece.kind)]) + std::to_string(piece.call) + "=";
      found += piece.text;
      before = piece;
    }
  };
  for (std::size_t i = 0; i < text.size(); i += step) add(reader.push(text.substr(i, step)));
  add(reader.finish());
  return found;
}

}  // namespace

TEST_CASE("Calls of tools are found however the text arrives") {
  const std::string text =
      "Well <call, then\n<call>{\"name\": \"f\", \"arguments\": {\"a\": \"}\\\"\", \"b\": [{}]}, \"id\": "
      "\"abcdefgh1\"}</call>\n"
      "<call>{\"name\": \"g-2\", \"arguments\": {}, \"id\": \"ABCDEFGH2\"}</call>";
  const std::string expected = "|t0=Well <call, then\n|n0=f|a0={\"a\": \"}\\\"\", \"b\": [{}]}|n1=g-2|a1={}";
  for (const std::size_t step : {1, 2, 3, 7, 1000}) CHECK(read(marked(), text, step) == expected);
}

TEST_CASE("A marker that no call follows is text") {
  for (const std::size_t step : {1, 100}) {
    CHECK(read(marked(), "a <cal", step) == "|t0=a <cal");
    CHECK(read(marked(), "a <call>{\"na", step) == "|t0=a <call>{\"na");
  }
}

TEST_CASE("A format without a marker has calls only at the beginning") {
  ToolCallFormat format;
  format.begin = "{\"name\": \"";
  format.middle = "\", \"parameters\": ";
  format.end = "}";
  CHECK(format.only_first());
  CHECK_FALSE(marked().only_first());
  const std::string call = "{\"name\": \"f\", \"parameters\": {\"a\": 1}}";
  for (const std::size_t step : {1, 5, 100}) {
    CHECK(read(format, call, step) == "|n0=f|a0={\"a\": 1}");
    CHECK(read(format, "It is " + call, step) == "|t0=It is " + call);
    CHECK(read(format, "{\"nam\"", step) == "|t0={\"nam\"");
  }
}

TEST_CASE("A call that must begin an answer is none inside of a text") {
  const ToolCallFormat format{.begin = "[CALLS]", .middle = "[ARGS]", .begins_answer = true};
  for (const std::size_t step : {1U, 3U, 100U}) {
    CHECK(read(format, "\"[CALLS]f[ARGS]{}\"", step) == "|t0=\"[CALLS]f[ARGS]{}\"");
    CHECK(read(format, "[CALLS]f[ARGS]{}", step) ==
          read({.begin = "[CALLS]", .middle = "[ARGS]"}, "[CALLS]f[ARGS]{}", step));
  }
}

TEST_CASE("The pattern of calls has the tools' names, arguments and as many calls as are asked for") {
  const auto schema = std::make_shared<nlohmann::ordered_json>(nlohmann::ordered_json::parse(
      R"({"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]})"));
  const std::string one = "<call>{\"name\": \"f\", \"arguments\": {\"n\":2}",
                    id = ", \"id\": \"abcdefgh1\"}</call>";
  const std::string two = one + id + "\n" + one + id;
  for (const bool many : {false, true}) {
    const ByteAutomaton calls(tool_call_pattern(marked(), {{"f", schema}, {"g", schema}}, many));
    CHECK(calls.fits(one + id));
    CHECK(calls.fits(two) == many);
    CHECK_FALSE(calls.fits("<call>{\"name\": \"h\", \"arguments\": {\"n\":2}" + id));
    CHECK_FALSE(calls.fits("<call>{\"name\": \"f\", \"arguments\": {\"n\":3}" + id));
    CHECK_FALSE(calls.fits(one));
  }
}

TEST_CASE("A chat format refuses a directory that does not exist, and a request that is no object") {
  const test::TemporaryDirectory directory;
  CHECK_THROWS_WITH(ChatFormat::read(directory / "none"),
                    "'" + (directory / "none").string() + "' is not a directory or a GGUF file");
  const ChatFormat format = ChatFormat::read(directory.path());
  CHECK_THROWS_WITH(format.prompt(nlohmann::ordered_json::array()),
                    "the request is array: expected an object with messages");
  CHECK_THROWS_WITH(format.prompt(nullptr), "the request is null: expected an object with messages");
}
