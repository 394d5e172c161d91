#include "apps/training/retrieval_losses.h"

#include <cmath>

#include <ATen/ATen.h>

#include "tests/support/catch.h"

using namespace zoo;

namespace {

at::Tensor rows(std::vector<double> values, std::int64_t columns) {
  return at::tensor(values, at::kDouble).view({-1, columns});
}

double loss(const EmbeddingLossOptions& options, const EmbeddedBatch& batch) {
  return embedding_loss(options, batch).item<double>();
}

// Cosines: of the first anchor 0.6 (its positive), 0, 1; of the second 0.8, 1 (its positive), 0.
const EmbeddedBatch& batch() {
  static const EmbeddedBatch batch{.anchors = rows({2, 0, 0, 0.5}, 2),
                                   .documents = rows({0.6, 0.8, 0, 3, 7, 0}, 2)};
  return batch;
}

}  // namespace

TEST_CASE("multiple negatives ranking: cross-entropy over all documents of the batch") {
  const double first = std::log(std::exp(1.2) + std::exp(0.0) + std::exp(2.0)) - 1.2;
  const double second = std::log(std::exp(1.6) + std::exp(2.0) + std::exp(0.0)) - 2.0;
  CHECK(loss({.scale = 2}, batch()) == Approx((first + second) / 2));

  // The other direction leaves the negative out, which has no anchor.
  const double back =
      std::log(std::exp(1.2) + std::exp(1.6)) - 1.2 + (std::log(std::exp(0.0) + std::exp(2.0)) - 2.0);
  CHECK(loss({.scale = 2, .symmetric = true}, batch()) == Approx(((first + second) / 2 + back / 2) / 2));
}

TEST_CASE("CoSENT: pairs in the wrong order, equal scores in none") {
  const EmbeddedBatch pairs{.anchors = rows({1, 0, 1, 0, 1, 0}, 2),
                            .documents = rows({0.6, 0.8, 5, 0, 0, 2}, 2),  // cosines 0.6, 1, 0
                            .scores = at::tensor({0.5, 0.1, 0.1}, at::kDouble)};
  const double expected = std::log(1 + std::exp(3 * (1 - 0.6)) + std::exp(3 * (0 - 0.6)));
  CHECK(loss({.loss = EmbeddingLoss::kCosent, .scale = 3}, pairs) == Approx(expected));
  CHECK(loss({.loss = EmbeddingLoss::kCosine}, pairs) == Approx((0.01 + 0.81 + 0.01) / 3));
}

TEST_CASE("matryoshka: the sum over the vectors cut to each size") {
  // Cut to one number, the vectors point in the same direction or in the opposite one.
  const EmbeddedBatch pair{
      .anchors = rows({3, 4}, 2), .documents = rows({-1, 0}, 2), .scores = at::tensor({1.0}, at::kDouble)};
  const EmbeddingLossOptions options{.loss = EmbeddingLoss::kCosine, .matryoshka_dims = {2, 1}};
  CHECK(loss(options, pair) == Approx(1.6 * 1.6 + 2 * 2));
  CHECK_THROWS_WITH(loss({.loss = EmbeddingLoss::kCosine, .matryoshka_dims = {3}}, pair),
                    Catch::Contains("matryoshka_dims: 3 is above the vectors' 2"));
}
