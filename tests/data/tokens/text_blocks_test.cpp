#include "data/tokens/text_blocks.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "data/tokens/sampler.h"
#include "tests/support/catch.h"

using namespace zoo;

namespace {

// Lines, of which each letter but the spaces is an id; a line ends in 0.
TextEncoder lines() {
  return {[](std::string_view text, std::size_t from) {
            const std::size_t end = text.find('\n', from == 0 ? 0 : from - 1);
            return end == text.npos ? text.size() : end + 1;
          },
          [](std::string_view part) {
            TokenIds ids;
            for (const char c : part)
              if (c != ' ') ids.push_back(c == '\n' ? 0 : c);
            return ids;
          }};
}

std::string text_of(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < i * i % 37; ++j)
      text += static_cast<char>(j % 5 == 3 ? ' ' : 'a' + (i + j) % 26);
    text += '\n';
  }
  return text;
}

}  // namespace

TEST_CASE("A block of a text has the ids that the whole text has from its place on, and each place has one") {
  for (const std::size_t count : {2U, 40U, 300U}) {
    const std::string text = text_of(count);
    const TextBlocks blocks(text, lines(), "it");
    const TokenIds one = lines().encode(text);
    TokenIds all = one;
    for (int round = 0; round < 40; ++round) all.insert(all.end(), one.begin(), one.end());
    std::vector<bool> first(one.size(), false);
    std::vector<std::int64_t> ids(std::min<std::size_t>(one.size() + 9, 30));
    std::size_t before = 0;
    for (std::size_t byte = 0; byte < text.size(); ++byte) {
      CAPTURE(count, byte);
      blocks.read(byte, ids);
      // Blocks begin in the text's order, so that the next one is not far.
      std::size_t at = before;
      while (at < one.size() &&
             !std::equal(ids.begin(), ids.end(), all.begin() + static_cast<std::ptrdiff_t>(at)))
        ++at;
      REQUIRE(at - before <= 1);
      first[at] = true;
      before = at;
    }
    CHECK(std::ranges::all_of(first, [](bool is_first) { return is_first; }));
  }
}

TEST_CASE("Blocks are drawn by the sampler as those of ids are, with the next ids as targets") {
  const std::string text = text_of(200);
  TextEncoder letters = lines();
  letters.encode = [](std::string_view part) {
    return TokenIds(part.begin(), part.end());
  };  // an id each byte
  const RandomBlockSampler drawn(TokenFile(std::make_shared<const TextBlocks>(text, letters, "it"), "it"), 25,
                                 8, {.seed = 3}),
      known(TokenFile(letters.encode(text), "it"), 25, 8, {.seed = 3});
  for (std::int64_t step = 0; step < 20; ++step) {
    std::vector<std::int64_t> inputs(200), targets(200), wanted_inputs(200), wanted_targets(200);
    drawn.fill_rows(step, 0, inputs, targets);
    known.fill_rows(step, 0, wanted_inputs, wanted_targets);
    REQUIRE((inputs == wanted_inputs && targets == wanted_targets));
  }
}

TEST_CASE("A part that cannot be encoded is told at the next block, and a text without ids is an error") {
  const std::string text = text_of(300) + "bad\n";
  const TextBlocks blocks(text, lines(), "it", [](std::string_view part) {
    if (part.find("bad") != part.npos) throw std::runtime_error("a bad line");
  });
  std::vector<std::int64_t> ids(3);
  const auto read_on = [&] {
    for (int i = 0; i < 100000; ++i) blocks.read(0, ids);
  };
  CHECK_THROWS_WITH(read_on(), "a bad line");
  const TextBlocks spaces("   ", lines(), "spaces");
  CHECK_THROWS_WITH(spaces.read(1, ids), "spaces: none of its texts has a token");
}
