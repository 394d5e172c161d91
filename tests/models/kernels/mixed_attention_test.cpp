#include <cmath>

#include "models/kernels/attention/short_attention.h"
#include "tests/models/kernels/autocast.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/instruction_sets.h"

using namespace zoo;
using kernels::causal_self_attention;

namespace {

struct Heads {
  at::Tensor q, k, v;
};

Heads heads_of(const at::Tensor& qkv, std::int64_t heads) {
  const auto parts = qkv.detach().to(at::kDouble).chunk(3, -1);
  const auto split = [&](const at::Tensor& x) {
    return x.reshape({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
  };
  return {split(parts[0]), split(parts[1]), split(parts[2])};
}

at::Tensor merged(const at::Tensor& x) { return x.transpose(1, 2).flatten(2); }

struct Result {
  at::Tensor output, gradient;
};

// The definition in double precision, with the roundings that mixed precision has.
Result reference(const at::Tensor& qkv, std::int64_t heads, const at::Tensor& output_gradient) {
  const Heads h = heads_of(qkv, heads);
  const double scale = 1 / std::sqrt(static_cast<double>(h.q.size(3)));
  const at::Tensor q = seen(h.q), k = seen(h.k), v = seen(h.v);
  const at::Tensor future = at::ones({q.size(2), q.size(2)}, at::kBool).triu(1);
  const at::Tensor scores = (at::matmul(q, k.transpose(-2, -1)) * scale).masked_fill(future, -INFINITY);
  const at::Tensor weights = seen(at::softmax(scores, -1));
  const auto parts = output_gradient.to(at::kDouble).reshape({q.size(0), q.size(2), heads, -1});
  const at::Tensor out = seen(parts.transpose(1, 2));
  const at::Tensor for_weights = at::matmul(out, v.transpose(-2, -1));
  const at::Tensor for_scores =
      seen(weights * (for_weights - (for_weights * weights).sum(-1, /*keepdim=*/true)) * scale);
  const at::Tensor for_q = at::matmul(for_scores, k), for_k = at::matmul(for_scores.transpose(-2, -1), q),
                   for_v = at::matmul(weights.transpose(-2, -1), out);
  return {merged(at::matmul(weights, v)), at::cat({merged(for_q), merged(for_k), merged(for_v)}, -1)};
}

}  // namespace

TEST_CASE("short attention under autocast rounds the factors of its products and nothing else") {
  ZOO_NEEDS_BFLOAT16_PRODUCTS;
  const std::int64_t length = GENERATE(1, 3, 16, 17, 64, 199, 256), head_dim = GENERATE(4, 16, 40, 64);
  CAPTURE(length, head_dim);
  at::manual_seed(1);
  const at::Tensor qkv = at::randn({2, length, 3 * 3 * head_dim}).requires_grad_();
  const at::Tensor output_gradient = at::randn({2, length, 3 * head_dim});
  at::Tensor output;
  {
    const Autocast autocast(at::kBFloat16);
    output = causal_self_attention(qkv, 3);
  }
  REQUIRE(output.scalar_type() == at::kFloat);
  output.backward(output_gradient);
  const Result expected = reference(qkv, 3, output_gradient);
  // A value at the border of two roundings may fall to either side.
  CHECK(test::relative_error(output.detach(), expected.output) < 2e-4);
  CHECK(test::relative_error(qkv.grad(), expected.gradient) < 2e-4);
}
