
#include "apps/command/verbs.h"
#include "tests/apps/sample_verb.h"

using namespace zoo;
using namespace zoo::test;

namespace {

int runs = 0;

int run_sample(const Arguments& arguments) {
  SampleVerb verb;
  if (!verb.flags.parse(arguments)) return 0;
  return ++runs;
}

int run_group(const Arguments& arguments) {
  return dispatch(arguments, "Has actions.", std::array{Verb{"inner", "", "an action", run_sample}});
}

const FlagOutline& find(const CommandOutline& outline, const std::string& name) {
  for (const FlagOutline& flag : outline.flags) {
    if (flag.name == name) return flag;
  }
  throw Error("no flag ", name);
}

CommandOutline outline_of_sample() {
  CommandOutline outline;
  run_sample({"tzoo verb", {"--nonsense"}, &outline});
  return outline;
}

}  // namespace

TEST_CASE("a verb that is asked for an outline describes itself and does nothing else") {
  const Captured captured;
  runs = 0;
  const CommandOutline outline = outline_of_sample();
  CHECK(runs == 0);
  CHECK(captured.text().empty());
  CHECK(outline.command == "tzoo verb");
  CHECK(outline.description == "Does something.");
  CHECK(outline.examples == std::vector<std::string>{"tzoo verb --max_iters 3"});
  CHECK(outline.flags.front().name == "max_iters");
}

TEST_CASE("a flag's outline is what help says of it, and what can be completed") {
  const CommandOutline outline = outline_of_sample();
  CHECK(find(outline, "max_iters").usage == "--max_iters N");
  CHECK(find(outline, "max_iters").description == "iterations (default: 2000)");
  CHECK(find(outline, "max_iters").paths == FlagOutline::Paths::none);
  CHECK(find(outline, "bias").usage == "--[no_]bias");
  CHECK(find(outline, "bias").boolean);
  CHECK(find(outline, "format").values == std::vector<std::string>{"torchscript", "huggingface"});
  CHECK(find(outline, "recipe").values == std::vector<std::string>{"small", "large", "broken"});
  CHECK(find(outline, "out_dir").paths == FlagOutline::Paths::directories);
  CHECK(find(outline, "config").paths == FlagOutline::Paths::files);
  CHECK(find(outline, "config").of_every_verb);
  CHECK(find(outline, "prompt").repeatable);
}

TEST_CASE("the outline of a group has those of its actions") {
  CommandOutline outline;
  run_group({"tzoo group", {}, &outline});
  CHECK(outline.description == "Has actions.");
  REQUIRE(outline.actions.size() == 1);
  CHECK(outline.actions[0].name == "inner");
  CHECK(outline.actions[0].description == "Does something.");
  CHECK(outline.actions[0].summary == "an action");
  REQUIRE(commands_below(outline).size() == 1);
  CHECK(commands_below(outline)[0] == outline.actions.data());
}

TEST_CASE("values that are suggested do not keep others out") {
  std::string name;
  Flags flags("tzoo verb", "");
  flags.add("name", name, "", {.placeholder = "NAME|DIR", .suggestions = {"a", "b"}});
  CHECK(flags.parse({"tzoo verb", {"--name", "c"}}));
  CHECK(name == "c");
  CommandOutline outline;
  CHECK_FALSE(flags.parse({"tzoo verb", {}, &outline}));
  CHECK(find(outline, "name").values == std::vector<std::string>{"a", "b"});
  CHECK(find(outline, "name").paths == FlagOutline::Paths::directories);
}

TEST_CASE("help lists several examples") {
  Flags flags("tzoo verb", "");
  flags.example("tzoo verb --one");
  flags.example("tzoo verb --two");
  const Captured captured;
  CHECK_FALSE(flags.parse({"tzoo verb", {"--help"}}));
  CHECK_THAT(captured.text(), Catch::EndsWith("\nExamples\n  tzoo verb --one\n  tzoo verb --two\n"));
}
