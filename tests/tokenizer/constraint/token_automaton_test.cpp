#include "tokenizer/constraint/token_automaton.h"

#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/constraint/constraint_support.h"
#include "tests/tokenizer/support.h"
#include "tokenizer/constraint/stop_strings.h"

using namespace zoo;
using Catch::Contains;
using test::kPython;

TEST_CASE("Tokens may follow where they leave a way to an end") {
  // After 'ad' the text could not continue: no token writes the e.
  const TokenAutomaton automaton(parse_regular_expression("a(bc|de)c*", kPython).pattern,
                                 {"a", "ab", "ad", "c", "", "bcc", "b", "x"});
  const auto ids = [&](TokenAutomaton::State state) {
    TokenIds found;
    for (const auto& step : automaton.steps(state)) found.push_back(step.id);
    std::sort(found.begin(), found.end());
    return found;
  };
  CHECK(ids(automaton.begin()) == TokenIds{0, 1});
  CHECK(automaton.distance(automaton.begin()) == 2);
  const auto behind_a = automaton.next(automaton.begin(), 0);
  CHECK(ids(behind_a) == TokenIds{5, 6});
  CHECK(automaton.distance(behind_a) == 1);
  CHECK(automaton.next(automaton.begin(), 2) == TokenAutomaton::kDead);
  CHECK(automaton.next(automaton.begin(), 4) == TokenAutomaton::kDead);
  const auto end = automaton.next(behind_a, 5);
  CHECK(automaton.accepts(end));
  CHECK(automaton.distance(end) == 0);
  CHECK(ids(end) == TokenIds{3});
  CHECK_THAT(test::message_of([] {
               TokenAutomaton(parse_regular_expression("ab", kPython).pattern, {"a", "c"});
             }),
             Contains("vocabulary"));
  CHECK_THAT(test::message_of([] { TokenAutomaton(choice({}), {"a"}); }), Contains("no text fits"));
}

TEST_CASE("The bytes of a token are those that it adds to a text") {
  const test::TemporaryDirectory folder;
  test::write_bytes(folder / "tokenizer.json", test::llama_tokenizer_json());
  const auto tokenizer = load_tokenizer(folder.path());
  const std::vector<std::string> bytes = token_bytes(*tokenizer);
  for (int byte = 0; byte < 256; ++byte)
    CHECK(bytes[static_cast<std::size_t>(byte) + 1] == std::string(1, static_cast<char>(byte)));
  CHECK(bytes[257] == " ");
  CHECK(bytes[258] == "a");
  CHECK(bytes[260] == " b");
}

TEST_CASE("Stop strings are found, and what may become one is held back") {
  const StopStrings stop({"end", "né"});
  CHECK(stop.find("the end") == 4);
  CHECK(stop.find("né end") == 0);
  CHECK_FALSE(stop.find("en d"));
  CHECK(stop.undecided("the en") == 2);
  CHECK(stop.undecided("abc") == 0);
  CHECK(stop.undecided("abn\xc3") == 2);  // the first byte of é
  CHECK(stop.undecided("e") == 1);
  CHECK(stop.longest() == 3);
  CHECK_THAT(test::message_of([] { StopStrings({"a", ""}); }), Contains("empty"));
}
