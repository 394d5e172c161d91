#include "data/base/near_match.h"

#include <vector>

#include "tests/support/catch.h"

TEST_CASE("nearest finds the candidate with the fewest changes") {
  const std::vector<std::string> names = {"train", "generate", "batch_size", "block_size", "gpt2", "gpt2-xl"};
  CHECK(zoo::nearest("trian", names) == "train");        // a swap
  CHECK(zoo::nearest("trai", names) == "train");         // one left out
  CHECK(zoo::nearest("trainn", names) == "train");       // one too many
  CHECK(zoo::nearest("generete", names) == "generate");  // one replaced
  CHECK(zoo::nearest("blok_size", names) == "block_size");
  CHECK(zoo::nearest("gpt2xl", names) == "gpt2-xl");
  CHECK(zoo::nearest("train", names) == "train");
}

TEST_CASE("nearest finds nothing where more than a third of the word would change") {
  const std::vector<std::string> names = {"abcdef"};
  CHECK(zoo::nearest("abcdxy", names) == "abcdef");  // 2 of 6
  CHECK(zoo::nearest("abcxyz", names).empty());      // 3 of 6
  CHECK(zoo::nearest("zebra", names).empty());
  CHECK(zoo::nearest("x", {}).empty());
}

TEST_CASE("did_you_mean ends a message only when a candidate is near") {
  const std::vector<std::string> names = {"kjv", "tinyshakespeare"};
  CHECK(zoo::did_you_mean("tinyshakespear", names) == "; did you mean 'tinyshakespeare'?");
  CHECK(zoo::did_you_mean("wikipedia", names).empty());
}
