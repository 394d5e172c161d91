#include "apps/training/batches/packed_batches.h"

#include "apps/training/batches/example_batches.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;

namespace {

std::vector<std::int64_t> values_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.const_data_ptr<std::int64_t>(), flat.const_data_ptr<std::int64_t>() + flat.numel()};
}

using Values = std::vector<std::int64_t>;

}  // namespace

TEST_CASE(
    "a packed batch of token files has complete documents, their lengths, and padding without targets") {
  const TokenFile tokens({1, 2, 3, 9, 4, 5, 9}, "ids");
  PackedBatches batches(TokenDataset{tokens, tokens}, /*end=*/9, /*block_size=*/8, {.batch_size = 1}, 1,
                        c10::kCPU);
  const ModelBatch batch = batches.training(0);
  CHECK(values_of(batch.inputs.input_ids) == Values{1, 2, 3, 9, 4, 5, 0, 0});
  CHECK(values_of(batch.inputs.targets) == Values{2, 3, 9, 4, 5, 9, -100, -100});
  CHECK(batch.inputs.documents == Values{3, 3, 2});
  CHECK(batch.targets == 6);
  CHECK(batch.tokens == 6);
  CHECK(batches.evaluation_batches(Split::kVal) == 1);
}

TEST_CASE("a packed batch of examples predicts the labels that they mark") {
  const Example first{.input_ids = {1, 2, 3}, .labels = {-100, -100, 3}};
  const Example second{.input_ids = {4, 5, 6, 7}, .labels = {4, 5, 6, -100}};
  Examples examples{{first, second}, {first}};
  PackedBatches batches(std::move(examples), /*block_size=*/6, {.batch_size = 1}, 1, c10::kCPU);
  const ModelBatch batch = batches.training(0);
  CHECK(values_of(batch.inputs.input_ids) == Values{4, 5, 6, 1, 2, 0});
  CHECK(values_of(batch.inputs.targets) == Values{5, 6, -100, -100, 3, -100});
  CHECK(batch.inputs.documents == Values{3, 2, 1});
  CHECK(batch.targets == 3);
}

TEST_CASE("examples that lack labels, segments or words are refused") {
  const auto batches = [](const Example& second, LabelShape shape) {
    const Example first{.input_ids = {1, 2}, .type_ids = {0, 1}, .words = {0, 1}, .labels = {1, 2}};
    return ExampleBatches({{first, second}, {first}}, {.labels = shape, .has_segments = true},
                          {.batch_size = 2}, 1, c10::kCPU);
  };
  const Example whole{.input_ids = {1, 2, 3}, .words = {0, 1, 1}, .labels = {1, 2}};
  // A row without segments beside a shorter one that has some: all its tokens are of the first.
  const ModelBatch batch = batches(whole, LabelShape::kNumbers).evaluation(Split::kTrain, 0);
  CHECK(batch.inputs.token_type_ids.sum(0).equal(at::tensor({0, 1, 0}, at::kLong)));
  const auto fails = [&](Example example, LabelShape shape, const char* message) {
    CHECK_THROWS_WITH(batches(example, shape), Catch::Equals(message));
  };
  fails({.labels = {1, 2}}, LabelShape::kNumbers, "example 1 has 0 input_ids; expected at least one");
  fails({.input_ids = {1}, .labels = {1}}, LabelShape::kNumbers, "example 1 has 1 labels; expected 2");
  fails({.input_ids = {1}, .type_ids = {0, 0}, .labels = {1, 2}}, LabelShape::kNumbers,
        "example 1 has 2 type_ids; expected 1");
  fails(whole, LabelShape::kTokens, "example 1 has 2 labels; expected 3");
  fails({.input_ids = {1}}, LabelShape::kMasked, "example 1 has 0 words; expected 1");
}

TEST_CASE("an epoch of packed batches has every document once, however its updates are divided") {
  TokenIds ids;
  for (TokenId i = 1; i <= 40; ++i) ids.insert(ids.end(), {i, i, 99});
  const TokenFile tokens(ids, "ids");
  const auto batches = [&](const BatchPlan& plan) {
    return PackedBatches(TokenDataset{tokens, tokens}, 99, 6, plan, 3, c10::kCPU);
  };
  PackedBatches one = batches({.batch_size = 4}), two = batches({.batch_size = 2, .accumulation = 2});
  std::vector<int> seen(100);
  for (std::int64_t update = 0; update < 5; ++update) {
    const at::Tensor row = one.training(update).inputs.input_ids;
    CHECK(at::equal(row, at::cat({two.training(2 * update).inputs.input_ids,
                                  two.training(2 * update + 1).inputs.input_ids})));
    for (const std::int64_t id : values_of(row)) ++seen[static_cast<std::size_t>(id)];
  }
  for (std::size_t i = 1; i <= 40; ++i) CHECK(seen[i] == 2);
}
