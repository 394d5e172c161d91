#include "models/layers/attention/masks.h"

#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;

namespace {

AttentionMask built_mask(const at::Tensor& kept, const MaskShape& shape) {
  return make_attention_mask(kept, shape, at::kFloat, at::kCPU);
}

// The bias of row `b` as text, a line a query: '1' where it keeps (0), '.' where it hides (-inf).
std::string picture(const AttentionMask& mask, std::int64_t b = 0) {
  std::string text;
  const at::Tensor rows = mask.bias[b][0];
  for (std::int64_t t = 0; t < rows.size(0); ++t) {
    for (std::int64_t s = 0; s < rows.size(1); ++s) {
      const double value = rows[t][s].item<double>();
      REQUIRE((value == 0 || value == -std::numeric_limits<double>::infinity()));
      text += value == 0 ? '1' : '.';
    }
    if (t + 1 < rows.size(0)) text += ' ';
  }
  return text;
}

at::Tensor kept_row(std::initializer_list<std::int64_t> row) {
  return at::tensor(std::vector<std::int64_t>(row), at::kLong).unsqueeze(0);
}

}  // namespace

TEST_CASE("without padding the causal mask needs no tensor") {
  const AttentionMask square = built_mask({}, {.queries = 4, .keys = 4, .causal = true});
  CHECK(square.causal);
  CHECK(!square.bias.defined());
  CHECK(!square.hidden_rows.defined());
  const AttentionMask full = built_mask({}, {.queries = 4, .keys = 4});
  CHECK(!full.causal);
  CHECK(!full.bias.defined());
  // A single query after a cache sees all of it.
  const AttentionMask step = built_mask({}, {.queries = 1, .keys = 9, .causal = true});
  CHECK(!step.causal);
  CHECK(!step.bias.defined());
}

TEST_CASE("a window hides keys that are far to the left, and in an encoder to the right") {
  CHECK(picture(built_mask({}, {.queries = 4, .keys = 4, .causal = true, .window = 2})) ==
        "1... 11.. .11. ..11");
  CHECK(picture(built_mask({}, {.queries = 4, .keys = 4, .window = 2})) == "11.. 111. .111 ..11");
  // After a cache of three positions.
  CHECK(picture(built_mask({}, {.queries = 1, .keys = 4, .causal = true, .window = 3})) == ".111");
  CHECK(picture(built_mask({}, {.queries = 2, .keys = 5, .causal = true, .window = 3})) == ".111. ..111");
  // A window as long as the sequence hides nothing, and needs no tensor.
  const AttentionMask whole = built_mask({}, {.queries = 4, .keys = 4, .causal = true, .window = 4});
  CHECK(whole.causal);
  CHECK(!whole.bias.defined());
}

TEST_CASE("several queries after a cache see it whole and themselves up to their own position") {
  const AttentionMask mask = built_mask({}, {.queries = 3, .keys = 5, .causal = true});
  CHECK(!mask.causal);
  CHECK(picture(mask) == "111.. 1111. 11111");
}

TEST_CASE("padding hides keys from every query") {
  const at::Tensor kept = at::tensor({1, 1, 0, 0, 1, 1, 1, 1}, at::kLong).view({2, 4});
  const AttentionMask mask = built_mask(kept, {.queries = 2, .keys = 4});
  CHECK(mask.bias.sizes() == at::IntArrayRef({2, 1, 2, 4}));
  CHECK(picture(mask, 0) == "11.. 11..");
  CHECK(picture(mask, 1) == "1111 1111");
  CHECK(!mask.hidden_rows.defined());
}

TEST_CASE("padding and the causal mask together, on the left and on the right") {
  const MaskShape shape{.queries = 4, .keys = 4, .causal = true};
  SECTION("right: the padded queries see what came before") {
    const AttentionMask mask = built_mask(kept_row({1, 1, 0, 0}), shape);
    CHECK(picture(mask) == "1... 11.. 11.. 11..");
    CHECK(!mask.hidden_rows.defined());
  }
  SECTION("left: the padded queries see nothing, and are told apart") {
    const AttentionMask mask = built_mask(kept_row({0, 0, 1, 1}), shape);
    CHECK(picture(mask) == "1111 1111 ..1. ..11");
    CHECK(at::equal(mask.hidden_rows.flatten(), at::tensor({1, 1, 0, 0}).to(at::kBool)));
  }
  SECTION("a row without any kept token") {
    const AttentionMask mask = built_mask(kept_row({0, 0, 0, 0}), shape);
    CHECK(mask.hidden_rows.all().item<bool>());
    CHECK(picture(mask) == "1111 1111 1111 1111");
  }
  SECTION("a hole amid the tokens") {
    CHECK(picture(built_mask(kept_row({1, 0, 1, 1}), shape)) == "1... 1... 1.1. 1.11");
  }
}

TEST_CASE("a mask of any integer or bool type says the same") {
  const at::Tensor kept = kept_row({1, 0, 1});
  const MaskShape shape{.queries = 3, .keys = 3, .causal = true};
  const std::string expected = picture(built_mask(kept, shape));
  for (const at::ScalarType type : {at::kBool, at::kByte, at::kInt, at::kFloat}) {
    CHECK(picture(built_mask(kept.to(type), shape)) == expected);
  }
}

TEST_CASE("the bias has the queries' type and hides by infinity in each") {
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const AttentionMask mask =
        make_attention_mask(kept_row({1, 0}), {.queries = 2, .keys = 2}, type, at::kCPU);
    CHECK(mask.bias.scalar_type() == type);
    CHECK(mask.bias.isinf().sum().item<int>() == 2);
    CHECK(!mask.bias.isnan().any().item<bool>());
  }
}

TEST_CASE("a mask that does not fit is refused with both lengths") {
  const auto message = [](const at::Tensor& kept, const MaskShape& shape) {
    return test::c10_error_of([&] { built_mask(kept, shape); });
  };
  CHECK_THAT(message(kept_row({1, 1, 1}), {.queries = 4, .keys = 4}),
             Catch::Contains("attention_mask must be [batch, 4]"));
  CHECK_THAT(message(at::ones({4}), {.queries = 4, .keys = 4}), Catch::Contains("got [4]"));
  CHECK_THAT(message({}, {.queries = 4, .keys = 3, .causal = true}),
             Catch::Contains("(3)") && Catch::Contains("(4)"));
}

TEST_CASE("positions count kept tokens only") {
  const at::Tensor kept = at::tensor({0, 0, 1, 1, 1, 1, 1, 1, 0, 0}, at::kLong).view({2, 5});
  const at::Tensor expected = at::tensor({0, 0, 0, 1, 2, 0, 1, 2, 2, 2}, at::kLong).view({2, 5});
  CHECK(at::equal(positions_of(kept), expected));
}
