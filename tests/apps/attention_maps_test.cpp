#include "apps/plots/attention_maps.h"

#include <cmath>

#include "apps/plots/gnuplot.h"
#include "tests/support/catch.h"

using namespace zoo;

namespace {

// Two layers of one head over three tokens; the second layer's rows are even.
AttentionMaps example() {
  const float third = 1.0F / 3;
  AttentionMaps maps{.name = "encoder", .queries = {"a", "b", "c"}, .keys = {"a", "b", "c"}};
  maps.layers = 2;
  maps.heads = 1;
  maps.weights = {0.5F, 0.5F, 0, 0.25F, 0.25F, 0.5F, 0, 1, 0};
  maps.weights.insert(maps.weights.end(), 9, third);
  return maps;
}

}  // namespace

TEST_CASE("a head's pattern: entropy in bits, and the mean weight along each line") {
  const HeadPattern pattern = pattern_of(example(), 0, 0);
  // Rows of 1, 1.5 and 0 bits.
  CHECK(pattern.entropy == Approx(2.5 / 3));
  CHECK(pattern.itself == Approx((0.5 + 0.25 + 0) / 3));
  CHECK(pattern.previous == Approx((0.25 + 1) / 2));
  CHECK(pattern.next == Approx((0.5 + 0.5) / 2));
  CHECK(pattern.first == Approx((0.5 + 0.25 + 0) / 3));
  const HeadPattern even = pattern_of(example(), 1, 0);
  CHECK(even.entropy == Approx(std::log2(3.0)));
  CHECK(even.previous == Approx(1.0 / 3));
}

TEST_CASE("a head's weight on earlier places of the same token, and on what followed them") {
  // Of "a b a b a", with weights of ten times the query and the key: queries 2, 3 and 4 repeat.
  AttentionMaps maps{.name = "decoder", .queries = {"a", "b", "a", "b", "a"}, .layers = 1, .heads = 1};
  maps.keys = maps.queries;
  for (int query = 0; query < 5; ++query)
    for (int key = 0; key < 5; ++key) maps.weights.push_back(static_cast<float>(10 * query + key));
  const HeadPattern pattern = pattern_of(maps, 0, 0);
  CHECK(pattern.duplicate == Approx((20 + 31 + (40 + 42)) / 3.0));
  CHECK(pattern.induction == Approx((21 + 32 + (41 + 43)) / 3.0));
  CHECK(std::isnan(pattern_of(example(), 0, 0).duplicate));
  CHECK(std::isnan(pattern_of(example(), 0, 0).induction));
}

TEST_CASE("from one text to another nothing is itself, previous or next") {
  AttentionMaps maps{.name = "cross", .queries = {"x"}, .keys = {"a", "b"}, .layers = 1, .heads = 1};
  maps.weights = {0.25F, 0.75F};
  const HeadPattern pattern = pattern_of(maps, 0, 0);
  CHECK(std::isnan(pattern.itself));
  CHECK(std::isnan(pattern.previous));
  CHECK(std::isnan(pattern.next));
  CHECK(std::isnan(pattern.duplicate));
  CHECK(pattern.first == 0.25);
  CHECK(pattern.entropy == Approx(0.811278).epsilon(1e-6));
  CHECK(maps.strongest_key(0, 0, 0) == 1);
  // One token alone has no neighbours.
  maps = {.name = "encoder", .queries = {"x"}, .keys = {"x"}, .layers = 1, .heads = 1, .weights = {1.0F}};
  CHECK(std::isnan(pattern_of(maps, 0, 0).previous));
  CHECK(pattern_of(maps, 0, 0).itself == 1);
}

TEST_CASE("the strongest key of a row, the first of equals") {
  CHECK(example().strongest_key(0, 0, 0) == 0);
  CHECK(example().strongest_key(0, 0, 1) == 2);
  CHECK(example().strongest_key(0, 0, 2) == 1);
  CHECK(example().weight(1, 0, 2, 0) == Approx(1.0 / 3));
}

TEST_CASE("a label shows the characters that have no shape") {
  CHECK(token_label(" a\n\t\x01") == "␣a↵⇥\uFFFD");
  CHECK(token_label("Ġthe 北京") == "Ġthe␣北京");
}

TEST_CASE("levels near one another take less than a bit") {
  const std::vector<std::uint8_t> none(100 * 100, 0), same(100 * 100, 37);
  CHECK(encode_levels(none, 100, 100).size() < 100);
  CHECK(encode_levels(same, 100, 100).size() < 1000);
  std::vector<std::uint8_t> all;
  for (std::size_t i = 0; i < 100 * 100; ++i) all.push_back(static_cast<std::uint8_t>(i * 7919 % 251));
  CHECK(encode_levels(all, 100, 100).size() > 9000);
}

TEST_CASE("gnuplot reads every text as it is: no quote ends it, nothing in it is run") {
  CHECK(gnuplot_quote("The cat 100%") == "\"The cat 100%\"");
  CHECK(gnuplot_quote("'`\"\\$\n") == R"("\047\140\042\134\044\012")");
  CHECK(gnuplot_quote("é") == "\"é\"");
}
