#include "data/tokens/masking.h"

#include <algorithm>
#include <fstream>
#include <set>

#include <nlohmann/json.hpp>

#include "data/tokens/span_corruption.h"
#include "tests/support/catch.h"
#include "tests/support/message_of.h"

using zoo::TokenMask;
using Ids = std::vector<std::int64_t>;

TEST_CASE("With the same draws, tokens are masked as by the collator of transformers") {
  std::ifstream file(ZOO_SOURCE_DIR "/tests/golden/masking.json");
  const auto golden = nlohmann::json::parse(file);
  for (std::size_t row = 0; row < golden["ids"].size(); ++row) {
    Ids ids = golden["ids"][row];
    Ids labels(ids.size());
    std::vector<TokenMask> masks(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (golden["chosen"][row][i] == 0) continue;
      masks[i].action = golden["masked"][row][i] == 1   ? TokenMask::Action::kMask
                        : golden["random"][row][i] == 1 ? TokenMask::Action::kRandom
                                                        : TokenMask::Action::kKeep;
      masks[i].random_id = golden["random_ids"][row][i];
    }
    apply_masks(masks, golden["mask_id"], ids, labels);
    CHECK(ids == golden["expected_ids"][row].get<Ids>());
    CHECK(labels == golden["expected_labels"][row].get<Ids>());
  }
}

TEST_CASE("Masks are drawn with their shares, and never for word -1") {
  const zoo::MaskingOptions options{.probability = 0.15, .mask_id = 1, .vocab_size = 100};
  std::vector<std::int32_t> words(20000);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = i % 10 == 0 ? -1 : static_cast<std::int32_t>(i);
  zoo::RandomStream random(3, {});
  double chosen = 0, masked = 0, replaced = 0;
  const auto masks = draw_masks(words, options, random);
  for (std::size_t i = 0; i < masks.size(); ++i) {
    if (words[i] < 0) CHECK(masks[i].action == TokenMask::Action::kNone);
    chosen += masks[i].action != TokenMask::Action::kNone;
    masked += masks[i].action == TokenMask::Action::kMask;
    replaced += masks[i].action == TokenMask::Action::kRandom;
  }
  // Four standard deviations of the binomials; the draws are the same on every machine.
  CHECK(chosen / 18000 == Approx(0.15).margin(0.011));
  CHECK(masked / chosen == Approx(0.8).margin(0.031));
  CHECK(replaced / chosen == Approx(0.1).margin(0.024));
}

TEST_CASE("With whole words the tokens of a word go together, and never more than the share") {
  const std::vector<std::int32_t> words{-1, 0, 0, 1, 2, 2, 2, 3, 4, 4, 5, -1};
  const zoo::MaskingOptions options{.probability = 0.3, .whole_words = true, .mask_id = 1, .vocab_size = 100};
  bool differs = false;
  std::vector<bool> first;
  for (std::int64_t step = 0; step < 50; ++step) {
    zoo::RandomStream random(3, {.step = step});
    const auto masks = draw_masks(words, options, random);
    std::vector<bool> chosen;
    for (const TokenMask& mask : masks) chosen.push_back(mask.action != TokenMask::Action::kNone);
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i] >= 0 && words[i] == words[i - 1]) CHECK(chosen[i] == chosen[i - 1]);
    }
    CHECK(std::count(chosen.begin(), chosen.end(), true) == 3);  // 0.3 of 10; words of 1 and 2 fill it up
    if (first.empty()) first = chosen;
    differs = differs || chosen != first;
  }
  CHECK(differs);
}

TEST_CASE("Rows of 512 inputs come from 568 tokens and leave 114 targets, as T5 was trained") {
  const zoo::SpanCorruptionOptions options{.sentinels = zoo::TokenIds(100)};
  const auto lengths = lengths_for_inputs(512, options);
  CHECK(lengths.tokens == 568);
  CHECK(lengths.inputs == 512);
  CHECK(lengths.targets == 114);
  const zoo::SpanCorruptionOptions few{.sentinels = zoo::TokenIds(27)};
  CHECK_THAT(zoo::test::message_of([&] { lengths_for_inputs(512, few); }), Catch::Contains("28 spans"));
}

TEST_CASE("Hidden spans become sentinels, and targets say what they hide") {
  // "Thank you for inviting me to your party last week", figure 2 of the paper, one number a word.
  const Ids text{10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  const zoo::SpanCorruptionOptions options{.sentinels = {99, 98}, .eos_id = 1};
  const auto result = corrupt_spans(text, {.kept = {2, 4}, .hidden = {2, 2}}, options);
  CHECK(result.inputs == Ids{10, 11, 99, 14, 15, 16, 17, 98, 1});
  CHECK(result.targets == Ids{99, 12, 13, 98, 18, 19, 1});
}

TEST_CASE("Drawn spans have the row's numbers and differ from row to row") {
  const zoo::SpanCorruptionOptions options{.sentinels = zoo::TokenIds(100)};
  const auto lengths = zoo::corrupted_lengths(40, options);  // 6 hidden in 2 spans
  CHECK(lengths.spans == 2);
  std::set<std::vector<std::int64_t>> seen;
  for (std::uint32_t row = 0; row < 200; ++row) {
    zoo::RandomStream random(5, {.row = row});
    const auto spans = draw_noise_spans(lengths, random);
    REQUIRE(spans.hidden.size() == 2);
    REQUIRE(spans.kept.size() == 2);
    CHECK(spans.hidden[0] + spans.hidden[1] == 6);
    CHECK(spans.kept[0] + spans.kept[1] == 34);
    CHECK(std::min({spans.hidden[0], spans.hidden[1], spans.kept[0], spans.kept[1]}) >= 1);
    seen.insert(spans.hidden);
  }
  CHECK(seen.size() == 5);  // 1 + 5, …, 5 + 1
}
