#include "data/corpora/child_process.h"

#include "tests/data/support.h"
#include "tests/support/temporary_directory.h"

using zoo::run_program;

TEST_CASE("run_program keeps output, errors and exit code apart") {
  const auto result = run_program({"/bin/sh", "-c", "echo out; echo err >&2; exit 7"});
  REQUIRE(result);
  CHECK(result->output == "out\n");
  CHECK(result->error_output == "err\n");
  CHECK(result->exit_code == 7);
}

TEST_CASE("run_program passes arguments without a shell between") {
  const auto result = run_program({"/usr/bin/printf", "%s|", "a b", "$HOME", "`id`", ";"});
  REQUIRE(result);
  CHECK(result->output == "a b|$HOME|`id`|;|");
}

TEST_CASE("run_program takes more output and errors than a pipe holds") {
  const auto result =
      run_program({"/bin/sh", "-c", "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero"});
  REQUIRE(result);
  CHECK(result->output.size() == 300000);
  CHECK(result->error_output.size() == 300000);
}

TEST_CASE("run_program gives its child an empty standard input") {
  const auto result = run_program({"/bin/sh", "-c", "cat; echo end"});
  REQUIRE(result);
  CHECK(result->output == "end\n");
}

TEST_CASE("run_program reports the signal that ended the program") {
  const auto result = run_program({"/bin/sh", "-c", "kill -TERM $$"});
  REQUIRE(result);
  CHECK(result->exit_code == 128 + 15);
}

TEST_CASE("run_program returns nothing for a program that is not installed") {
  CHECK_FALSE(run_program({"zoo-no-such-program"}));
}

TEST_CASE("run_program names a file that cannot be executed") {
  const zoo::test::TemporaryDirectory folder;
  const auto path = zoo::test::write_bytes(folder / "data", "x").string();
  CHECK_THAT(zoo::test::message_of([&] { run_program({path}); }),
             Catch::Contains(path + ": Permission denied"));
}

TEST_CASE("the reason of a failure is one line") {
  CHECK(zoo::ChildResult{1, "", "https://host:\r\nERROR 404\n\n"}.reason() == "https://host: ERROR 404");
  CHECK(zoo::ChildResult{143, "out", "\n"}.reason() == "exit code 143");
}
