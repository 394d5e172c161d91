#include "models/kernels/attention/short_attention.h"

#include <torch/csrc/autograd/function.h>

#include "models/layers/attention/attention.h"
#include "models/ops/attention.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/instruction_sets.h"

using namespace zoo;
using kernels::causal_self_attention;
using kernels::has_short_attention;

namespace {

struct ShortAttention {
  at::Tensor output, gradient;
};

// The same through the explicit weights of scaled_dot_product_attention, in double precision.
ShortAttention short_reference(const at::Tensor& qkv, std::int64_t heads, const at::Tensor& output_gradient) {
  const at::Tensor wide = qkv.detach().to(at::kDouble).requires_grad_();
  const auto parts = wide.chunk(3, -1);
  const auto split = [&](const at::Tensor& x) {
    return x.reshape({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
  };
  const at::Tensor q = split(parts[0]), k = split(parts[1]), v = split(parts[2]);
  const at::Tensor future = at::ones({q.size(2), q.size(2)}, at::kBool).triu(1);
  const at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) / std::sqrt(static_cast<double>(q.size(3)));
  const at::Tensor weights = at::softmax(scores.masked_fill(future, -INFINITY), -1);
  const at::Tensor output = at::matmul(weights, v).transpose(1, 2).flatten(2);
  output.backward(output_gradient.to(at::kDouble));
  return {output.detach(), wide.grad()};
}

// Names of the graph's functions between the tensor and its inputs.
std::string graph_of(const at::Tensor& output) {
  std::string names;
  std::vector<decltype(torch::autograd::Edge::function)> left{output.grad_fn()};
  while (!left.empty()) {
    const auto node = left.back();
    left.pop_back();
    names += node->name() + "\n";
    for (const auto& edge : node->next_edges()) {
      if (edge.function) left.push_back(edge.function);
    }
  }
  return names;
}

}  // namespace

TEST_CASE("short causal attention and its gradient equal the definition for every length and head size") {
  ZOO_NEEDS_TRAINING_KERNELS;
  const std::int64_t length = GENERATE(1, 3, 16, 17, 64, 200), head_dim = GENERATE(4, 16, 40);
  CAPTURE(length, head_dim);
  at::manual_seed(1);
  const at::Tensor qkv = (at::randn({2, length, 3 * 3 * head_dim}) * 2).requires_grad_();
  REQUIRE(has_short_attention(qkv));
  const at::Tensor output_gradient = at::randn({2, length, 3 * head_dim});
  const at::Tensor output = causal_self_attention(qkv, 3);
  output.backward(output_gradient);
  const ShortAttention expected = short_reference(qkv, 3, output_gradient);
  CHECK(test::relative_error(output.detach(), expected.output) < 1e-6);
  if (length > 1) {
    CHECK(test::relative_error(qkv.grad(), expected.gradient) < 2e-6);
  } else {
    // One position attends to itself alone, whatever query and key are.
    CHECK(qkv.grad().slice(2, 0, 2 * 3 * head_dim).abs().max().item<double>() < 1e-6);
  }
}

TEST_CASE("scores as large as float32 allows overflow nothing") {
  ZOO_NEEDS_TRAINING_KERNELS;
  const at::Tensor qkv = at::full({1, 20, 3 * 16}, 1e4F);
  REQUIRE(has_short_attention(qkv));
  CHECK(test::relative_error(causal_self_attention(qkv, 1), at::full({1, 20, 16}, 1e4, at::kDouble)) < 1e-6);
}

TEST_CASE("attention to thirds of one projection runs this kernel, and to other tensors it does not") {
  ZOO_NEEDS_TRAINING_KERNELS;
  const at::Tensor qkv = at::randn({2, 16, 36}).requires_grad_();
  const auto parts = qkv.split(12, -1);
  const auto heads = [&](std::size_t i) { return parts[i].unflatten(-1, {3, 4}).transpose(1, 2); };
  const AttentionMask causal{.causal = true};
  const auto runs_kernel = [](const at::Tensor& output) {
    return graph_of(output).find("CausalSelfAttention") != std::string::npos;
  };
  CHECK(runs_kernel(ops::scaled_dot_product_attention(heads(0), heads(1), heads(2), causal, {}).output));
  CHECK_FALSE(runs_kernel(
      ops::scaled_dot_product_attention(heads(0), heads(1).clone(), heads(2), causal, {}).output));
  CHECK_FALSE(
      runs_kernel(ops::scaled_dot_product_attention(heads(0), heads(2), heads(1), causal, {}).output));
  CHECK_FALSE(runs_kernel(ops::scaled_dot_product_attention(heads(0), heads(1), heads(2), {}, {}).output));
  TransformerConfig config = test::small_config();
  SelfAttention attention(config);
  CHECK(runs_kernel(attention(at::randn({2, 16, 12}), SelfAttentionContext{.mask = causal})));
}
