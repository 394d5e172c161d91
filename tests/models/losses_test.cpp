#include "models/heads/losses.h"

#include <cmath>

#include <ATen/ops/log_softmax.h>

#include "models/registry.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using Catch::Contains;

namespace {

double value(const at::Tensor& loss) {
  REQUIRE(loss.dim() == 0);
  return loss.item<double>();
}

// -log softmax(logits)[label] of two logits.
double surprise(double own, double other) { return std::log(1 + std::exp(other - own)); }

}  // namespace

TEST_CASE("cross entropy is the mean over the labels that are not ignored") {
  const at::Tensor logits = at::tensor({1.0, 3.0, 0.5, -1.0, 2.0, 2.0}).view({1, 3, 2});
  const at::Tensor labels = at::tensor({0, -100, 1}, at::kLong).view({1, 3});
  CHECK(value(cross_entropy(logits, labels)) == Approx((surprise(1, 3) + surprise(2, 2)) / 2));
}

TEST_CASE("shifted labels are the next ones and nothing at the end") {
  const at::Tensor labels = at::tensor({5, 6, -100, 8}, at::kLong).view({2, 2});
  CHECK(shift_left(labels).equal(at::tensor({6, -100, 8, -100}, at::kLong).view({2, 2})));
}

TEST_CASE("the kind of labels decides a sequence classifier's loss") {
  TransformerConfig config;
  config.num_labels = 2;
  const at::Tensor logits = at::tensor({1.0, 3.0, 0.5, -1.0}).view({2, 2});
  const at::Tensor classes = at::tensor({1, 0}, at::kLong),
                   numbers = at::tensor({1.0, 0.0, 1.0, 1.0}).view({2, 2});
  // The binary cross entropy of a logit x: log(1 + e^-x) for 1 and log(1 + e^x) for 0.
  const double binary = (surprise(1, 0) + surprise(0, 3) + surprise(0.5, 0) + surprise(-1, 0)) / 4;
  const double squares = (0.0 + 9.0 + 0.25 + 4.0) / 4;

  CHECK(value(sequence_loss(logits, classes, config)) == Approx((surprise(3, 1) + surprise(0.5, -1)) / 2));
  CHECK(value(sequence_loss(logits, numbers, config)) == Approx(binary));
  config.problem_type = ProblemType::kMultiLabel;
  CHECK(value(sequence_loss(logits, numbers.to(at::kLong), config)) == Approx(binary));
  config.problem_type = ProblemType::kRegression;
  CHECK(value(sequence_loss(logits, numbers, config)) == Approx(squares));
  CHECK_THAT(test::c10_error_of([&] { sequence_loss(logits, classes, config); }),
             Contains("regression must be [2, 2], got [2]"));
  config.problem_type = ProblemType::kSingleLabel;
  CHECK_THAT(test::c10_error_of([&] { sequence_loss(logits, numbers, config); }),
             Contains("single-label classification must be [2], got [2, 2]"));
}

TEST_CASE("one label is a regression, to numbers or to columns of them") {
  TransformerConfig config;
  config.num_labels = 1;
  const at::Tensor logits = at::tensor({1.0, 3.0}).view({2, 1}), labels = at::tensor({0.5, 1.0});
  CHECK(value(sequence_loss(logits, labels, config)) == Approx((0.25 + 4.0) / 2));
  CHECK(value(sequence_loss(logits, labels.unsqueeze(1), config)) == Approx((0.25 + 4.0) / 2));
  CHECK_THAT(test::c10_error_of([&] { sequence_loss(logits, labels.slice(0, 1), config); }),
             Contains("regression must be [2], got [1]"));
}

TEST_CASE("the loss of a span is the mean of its two ends', and an end outside the input is ignored") {
  const at::Tensor starts = at::tensor({1.0, 3.0, 0.5, -1.0}).view({2, 2});
  const at::Tensor ends = at::tensor({0.0, 2.0, 4.0, 1.0}).view({2, 2});
  const at::Tensor spans = at::tensor({0, 1, 1, 7}, at::kLong).view({2, 2});
  const double start = (surprise(1, 3) + surprise(-1, 0.5)) / 2, end = surprise(2, 0);
  CHECK(value(span_loss(starts, ends, spans)) == Approx((start + end) / 2));
  CHECK_THAT(test::c10_error_of([&] { span_loss(starts, ends, spans.slice(1, 1)); }),
             Contains("must be [2, 2], got [2, 1]"));
}

TEST_CASE("losses of 16-bit logits are computed in float32") {
  const at::Tensor logits = at::tensor({1.0, 3.0}).view({1, 2}).to(at::kBFloat16);
  const at::Tensor loss = cross_entropy(logits, at::tensor({0}, at::kLong));
  CHECK(loss.scalar_type() == at::kFloat);
  CHECK(value(loss) == Approx(surprise(1, 3)));
}

TEST_CASE("The tutorials' own models smooth their labels as all others do") {
  const std::string name = GENERATE("tutorial-embeddings", "tutorial-ambiguous", "tutorial-disagreement");
  CAPTURE(name);
  const Family& family = find_family(name);
  const auto model =
      test::random_model(name, family.presets.front().config, family.heads.front().head, /*seed=*/3);
  const at::Tensor ids = at::tensor({1, 2, 3, 4, 5, 0}, at::kLong).view({2, 3});
  const bool writes = name == "tutorial-embeddings";
  const at::Tensor labels = writes ? ids : at::tensor({1, 3}, at::kLong);
  const ModelOutput output =
      model->forward({.input_ids = ids, .labels = labels, .loss = {.label_smoothing = 0.3}});
  const at::Tensor rows = writes ? output.logits.slice(1, 0, -1).flatten(0, 1) : output.logits;
  const at::Tensor chances = at::log_softmax(rows, -1),
                   targets = writes ? labels.slice(1, 1).flatten() : labels;
  const double right = -chances.gather(1, targets.unsqueeze(1)).mean().item<double>();
  CHECK(value(output.loss) == Approx(0.7 * right - 0.3 * chances.mean().item<double>()));
}

TEST_CASE("The tutorial's model that predicts words makes logits of the asked positions alone") {
  const std::string name = "tutorial-embeddings";
  const Family& family = find_family(name);
  const auto model =
      test::random_model(name, family.presets.front().config, family.heads.front().head, /*seed=*/3);
  const at::Tensor ids = at::tensor({1, 2, 3, 4, 5, 0}, at::kLong).view({2, 3});
  const at::Tensor targets = at::tensor({-100, 3, -100, 5, -100, 1}, at::kLong).view({2, 3});
  const at::Tensor asked = at::tensor({1, 3, 5}, at::kLong);
  const ModelOutput all = model->forward({.input_ids = ids, .targets = targets});
  const ModelOutput some = model->forward({.input_ids = ids, .targets = targets, .label_positions = asked});
  CHECK(some.logits.allclose(all.logits.flatten(0, 1).index_select(0, asked)));
  CHECK(value(some.loss) == Approx(value(all.loss)));
}
