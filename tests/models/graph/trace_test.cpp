#include "models/graph/trace.h"

#include <ATen/ops/tril_indices.h>
#include <torch/nn/module.h>

#include "data/base/error.h"
#include "tests/support/catch.h"

using namespace zoo;
using Catch::Contains;

namespace {

// x [batch, length] of integers below 5.
graph::Graph traced_graph(const std::function<at::Tensor(const at::Tensor&)>& forward) {
  const graph::TraceRequest request{
      .symbols = {{"batch", 0, 0}, {"length", 0, 1}},
      .inputs = {{"x", {graph::Size::symbol(0), graph::Size::symbol(1)}, 5}},
      .points = {{2, 3, 5}, {7, 11, 13}},
      .forward = [&](const std::vector<at::Tensor>& x) { return std::vector<at::Tensor>{forward(x[0])}; }};
  torch::nn::Module module("empty");
  module.register_buffer("table", at::arange(4));
  return graph::trace(module, request);
}

void check_trace_refused(const std::function<at::Tensor(const at::Tensor&)>& forward,
                         const std::string& part) {
  CHECK_THROWS_WITH(traced_graph(forward), Contains(part));
}

}  // namespace

TEST_CASE("a size is the polynomial through its values") {
  // 2 + 3 b + 5 t + 7 b t at (2, 3), (4, 3), (2, 10), (4, 10).
  const auto size = graph::Size::solve({{2, 4}, {3, 10}}, {65, 113, 198, 344});
  REQUIRE(size);
  CHECK(size->value({1, 1}) == 17);
  CHECK(size->value({6, 20}) == 960);
  CHECK_FALSE(graph::Size::solve({{2, 4}, {3, 10}}, {65, 114, 198, 344}));
  CHECK((*size * graph::Size::symbol(1)).value({1, 2}) == 58);
}

TEST_CASE("a graph computes what was traced, at other sizes") {
  const auto forward = [](const at::Tensor& x) {
    const std::int64_t length = x.size(1);
    const at::Tensor y = x.to(at::kFloat).unsqueeze(-1) * at::ones({length, length}).tril();  // [B, T, T]
    const auto halves = at::cat({y, 1 - y}, -1).chunk(2, -1);
    return at::matmul(halves[0], halves[1]).masked_fill_(y.eq(0), -1.0).sum(2).sum(1) + length * x.size(0);
  };
  const graph::Graph graph = traced_graph(forward);
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{1, 1}, {4, 6}, {2, 9}}) {
    const at::Tensor x = at::randint(5, shape, at::kLong);
    CHECK(graph::run(graph, {x})[0].equal(forward(x)));
  }
}

TEST_CASE("an operator that no graph can hold is refused by name") {
  check_trace_refused([](const at::Tensor& x) { return x.sum().item<std::int64_t>() > 3 ? x + 1 : x; },
                      "aten::item reads the values");
  check_trace_refused([](const at::Tensor& x) { return x.size(1) > 10 ? x + 1 : x * 2; },
                      "number 0 is aten::mul.Scalar or aten::add.Scalar");
  check_trace_refused(
      [](const at::Tensor& x) {
        return x.expand({x.size(0), x.size(1)}).slice(1, x.size(1) % 3);
      },
      "the argument 'start' of aten::slice.Tensor does not follow");
  check_trace_refused([](const at::Tensor& x) { return at::tril_indices(x.size(1), 4); },
                      "the argument 'row' of aten::tril_indices takes a constant");
  check_trace_refused(
      [](const at::Tensor& x) {
        const at::Tensor copy = x + 0;
        copy.slice(1, 0, 1).fill_(9);
        return copy;
      },
      "aten::fill_ writes into a tensor with views");
  // Values that host code read from the input.
  check_trace_refused(
      [](const at::Tensor& x) { return x + at::tensor({x.const_data_ptr<std::int64_t>()[3]}); },
      "read by aten::add.Tensor, depends on the inputs");
}
