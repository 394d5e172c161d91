#include "models/layers/attention/disagreement.h"

#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;

namespace {

at::Tensor tensor(std::vector<float> values, at::IntArrayRef sizes) { return at::tensor(values).view(sizes); }

}  // namespace

TEST_CASE("heads that look at the same key are wholly alike in position, at different keys by 1 / H") {
  // One query, two heads, two keys.
  CHECK(position_similarity(tensor({1, 0, 1, 0}, {1, 2, 1, 2})).item<double>() == 1);
  // 1/4 (1 + 0 + 0 + 1): each head is still like itself.
  CHECK(position_similarity(tensor({1, 0, 0, 1}, {1, 2, 1, 2})).item<double>() == 0.5);
}

TEST_CASE("position similarity by hand: the mean over queries of the products of all pairs of heads") {
  // Query 0: heads (0.5, 0.5) and (1, 0): products 0.5, 0.5, 0.5, 1: mean 0.625.
  // Query 1: heads (0, 1) and (0.25, 0.75): products 1, 0.75, 0.75, 0.625: mean 0.78125.
  const at::Tensor weights = tensor({0.5, 0.5, 0, 1, 1, 0, 0.25, 0.75}, {1, 2, 2, 2});
  CHECK(position_similarity(weights).item<double>() == Approx((0.625 + 0.78125) / 2));
}

TEST_CASE("subspace similarity by hand: the mean cosine of all pairs of heads, whatever their lengths") {
  // At right angles: cosines 1, 0, 0, 1.
  CHECK(subspace_similarity(tensor({3, 0, 0, 7}, {1, 2, 1, 2})).item<double>() == Approx(0.5));
  // Against one another: 1, -1, -1, 1.
  CHECK(subspace_similarity(tensor({3, 4, -6, -8}, {1, 2, 1, 2})).item<double>() == Approx(0.0).margin(1e-6));
  // Three heads, two of them alike: (3 + 2) / 9.
  CHECK(subspace_similarity(tensor({1, 0, 2, 0, 0, 5}, {1, 3, 1, 2})).item<double>() == Approx(5.0 / 9));
}

TEST_CASE("head overlap by hand: the sum over pairs of different heads, 0 where they share no key") {
  CHECK(head_overlap(tensor({1, 0, 0, 1}, {1, 2, 1, 2})).item<double>() == 0);
  // Heads (1, 0), (0.5, 0.5), (0, 1): 0.5 + 0 + 0.5.
  CHECK(head_overlap(tensor({1, 0, 0.5, 0.5, 0, 1}, {1, 3, 1, 2})).item<double>() == 1);
  // A second row of the batch is added, not averaged.
  CHECK(head_overlap(tensor({1, 0, 1, 0, 1, 0, 1, 0}, {2, 2, 1, 2})).item<double>() == 2);
}

TEST_CASE("the penalties push alike heads apart: a step against the gradient lowers each") {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
  const auto lowered = [&](auto penalty, auto map) {
    at::Tensor x = at::randn({2, 3, 4, 5}, generator).requires_grad_();
    const at::Tensor before = penalty(map(x));
    before.backward();
    const at::NoGradGuard no_grad;
    return before.template item<double>() - penalty(map(x - 0.1 * x.grad())).template item<double>();
  };
  const auto softmax = [](const at::Tensor& x) { return x.softmax(-1); };
  const auto same = [](const at::Tensor& x) { return x; };
  CHECK(lowered(position_similarity, softmax) > 0);
  CHECK(lowered(subspace_similarity, same) > 0);
  CHECK(lowered(head_overlap, softmax) > 0);
}

TEST_CASE("what is no tensor of heads is refused") {
  CHECK_THROWS_AS(position_similarity(at::ones({2, 3, 4})), c10::Error);
  CHECK_THROWS_AS(subspace_similarity(at::ones({2, 3})), c10::Error);
}
