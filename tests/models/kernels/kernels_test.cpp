#include <cmath>
#include <mutex>
#include <set>
#include <thread>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/autograd.h>

#include "models/kernels/parallel.h"
#include "models/kernels/training/linear.h"
#include "models/kernels/training/row_functions.h"
#include "models/layers/attention/positions.h"
#include "models/ops/activation.h"
#include "tests/models/double_reference.h"
#include "tests/support/catch.h"
#include "tests/support/instruction_sets.h"

using zoo::kernels::Pointwise;
using zoo::test::compare;
using zoo::test::leaf;

namespace {

struct KernelCase {
  std::int64_t rows, in, out;
};

// Below and above a tile of 6 x 64, a whole vector of 16, the depth of 512 that is summed at a time, and
// blocks of 120 rows and 512 columns.
const std::vector<KernelCase> kKernelCases = {{16, 1, 1},      {16, 3, 15},     {17, 16, 16},  {19, 31, 33},
                                              {23, 64, 65},    {24, 130, 48},   {97, 65, 130}, {100, 513, 17},
                                              {16, 1100, 80},  {768, 128, 384}, {30, 20, 700}, {33, 17, 257},
                                              {1030, 40, 100}, {137, 530, 600}};

at::Tensor reference(const at::Tensor& x, Pointwise f) {
  switch (f) {
    case Pointwise::kNone: return x;
    case Pointwise::kRelu: return at::relu(x);
    case Pointwise::kGelu: return at::gelu(x);
    case Pointwise::kGeluTanh: return at::gelu(x, "tanh");
    case Pointwise::kSilu: return at::silu(x);
    case Pointwise::kRelu2: return at::relu(x).square();
  }
  return {};
}

}  // namespace

TEST_CASE("The CPU's linear layer equals the definition in double precision, gradients too") {
  ZOO_NEEDS_TRAINING_KERNELS;
  at::manual_seed(1);
  for (const KernelCase& c : kKernelCases) {
    INFO(c.rows << " x " << c.in << " to " << c.out);
    compare(
        {leaf({c.rows, c.in}), leaf({c.out, c.in}), leaf({c.out})},
        [](const auto& t) { return zoo::kernels::linear(t[0], t[1], t[2]); },
        [](const auto& t) { return at::linear(t[0], t[1], t[2]); });
    compare(
        {leaf({c.rows, c.in}), leaf({c.out, c.in})},
        [](const auto& t) { return zoo::kernels::linear(t[0], t[1], {}); },
        [](const auto& t) { return at::linear(t[0], t[1]); });
    compare(
        {leaf({c.rows, c.in}), leaf({c.out, c.in}), leaf({c.out}), leaf({c.rows, c.out})},
        [](const auto& t) { return zoo::kernels::linear(t[0], t[1], t[2], t[3]); },
        [](const auto& t) { return at::linear(t[0], t[1], t[2]) + t[3]; });
  }
}

TEST_CASE("The CPU's linear layer takes inputs of any rank and strides") {
  ZOO_NEEDS_TRAINING_KERNELS;
  at::manual_seed(2);
  const auto ours = [](const auto& t) {
    return zoo::kernels::linear(t[0].transpose(0, 1), t[1].t(), t[2].slice(0, 0, 33, 3));
  };
  const auto theirs = [](const auto& t) {
    return at::linear(t[0].transpose(0, 1), t[1].t(), t[2].slice(0, 0, 33, 3));
  };
  compare({leaf({5, 7, 20}), leaf({20, 11}), leaf({33})}, ours, theirs);
  compare(
      {leaf({5, 7, 20}), leaf({11, 20}), leaf({7, 5, 11})},
      [](const auto& t) { return zoo::kernels::linear(t[0], t[1], {}, t[2].transpose(0, 1)); },
      [](const auto& t) { return at::linear(t[0], t[1]) + t[2].transpose(0, 1); });
}

TEST_CASE("The CPU's feed-forward network equals the definition in double precision, gradients too") {
  ZOO_NEEDS_TRAINING_KERNELS;
  at::manual_seed(3);
  for (const Pointwise f :
       {Pointwise::kRelu, Pointwise::kGelu, Pointwise::kGeluTanh, Pointwise::kSilu, Pointwise::kRelu2}) {
    for (const KernelCase& c : kKernelCases) {
      INFO("activation " << static_cast<int>(f) << ", " << c.rows << " x " << c.in << " through " << c.out);
      compare(
          {leaf({c.rows, c.in}), leaf({c.out, c.in}), leaf({c.out}), leaf({c.in, c.out}), leaf({c.in})},
          [&](const auto& t) {
            return zoo::kernels::feed_forward(t[0], {t[1], t[2], t[3], t[4]}, f);
          },
          [&](const auto& t) { return at::linear(reference(at::linear(t[0], t[1], t[2]), f), t[3], t[4]); });
      compare(
          {leaf({c.rows, c.in}), leaf({c.out, c.in}), leaf({c.in, c.out})},
          [&](const auto& t) {
            return zoo::kernels::feed_forward(t[0], {t[1], {}, t[2], {}}, f);
          },
          [&](const auto& t) { return at::linear(reference(at::linear(t[0], t[1]), f), t[2]); });
      compare(
          {leaf({c.rows, c.in}), leaf({c.out, c.in}), leaf({c.in, c.out}), leaf({c.rows, c.in})},
          [&](const auto& t) {
            return zoo::kernels::feed_forward(t[0], {t[1], {}, t[2], {}}, f, t[3]);
          },
          [&](const auto& t) { return at::linear(reference(at::linear(t[0], t[1]), f), t[2]) + t[3]; });
    }
  }
}

TEST_CASE("The CPU's gated units equal the definition in double precision, gradients too") {
  ZOO_NEEDS_TRAINING_KERNELS;
  for (const zoo::Activation unit : {zoo::Activation::kSwiGlu, zoo::Activation::kGeGlu,
                                     zoo::Activation::kGeGluTanh, zoo::Activation::kReGlu}) {
    INFO(zoo::name_of(unit));
    for (const at::Tensor& x : {leaf({2, 3, 74}), leaf({301, 32}), leaf({64, 5}).t()}) {
      REQUIRE(zoo::kernels::has_fast_gated_unit(x));
      const auto unit_of = [&](const std::vector<at::Tensor>& in) { return zoo::activate(4 * in[0], unit); };
      compare({x}, unit_of, unit_of);
    }
  }
}

TEST_CASE("The CPU's rotation of heads equals the definition in double precision, gradients too") {
  ZOO_NEEDS_TRAINING_KERNELS;
  const at::Tensor line = at::arange(7), rows = at::stack({line, line + 5});
  for (const at::Tensor& positions : {line, rows}) {
    const auto table = zoo::RotaryTable::make(positions, /*head_dim=*/36, /*theta=*/100.0);
    // As projections have them, as a cache has them, and heads of which only the first elements turn.
    for (const at::Tensor& x :
         {leaf({2, 7, 3, 36}).transpose(1, 2), leaf({2, 3, 7, 36}), leaf({2, 3, 7, 40})}) {
      REQUIRE(zoo::kernels::has_fast_rotation(x.slice(-1, 0, 36), table.cos));
      const auto turned = [&](const std::vector<at::Tensor>& in) { return table.rotate(in[0]); };
      compare({x}, turned, turned);
    }
  }
}

TEST_CASE("The activations of the CPU kernels hold far from zero") {
  ZOO_NEEDS_TRAINING_KERNELS;
  const at::Tensor x = at::linspace(-40, 40, 4001).view({-1, 1});
  const at::Tensor one = at::ones({1, 1});
  for (const Pointwise f :
       {Pointwise::kRelu, Pointwise::kGelu, Pointwise::kGeluTanh, Pointwise::kSilu, Pointwise::kRelu2}) {
    INFO("activation " << static_cast<int>(f));
    const at::Tensor input = x.clone().requires_grad_();
    const at::Tensor wide = x.to(at::kDouble).requires_grad_();
    const at::Tensor actual = zoo::kernels::feed_forward(input, {one, {}, one, {}}, f),
                     expected = reference(wide, f);
    // Where the function runs out to zero its error counts beside 1, not beside the value.
    const at::Tensor size = expected.abs().clamp_min(1.0);
    CHECK(((actual - expected).abs() / size).max().item<double>() < 3e-6);
    actual.sum().backward();
    expected.sum().backward();
    CHECK((input.grad() - wide.grad()).abs().max().item<double>() < 3e-6);
  }
}

TEST_CASE("The CPU kernels give the same bits on one thread as on three") {
  ZOO_NEEDS_TRAINING_KERNELS;
  at::manual_seed(4);
  const int before = at::get_num_threads();
  for (const KernelCase& c : kKernelCases) {
    const at::Tensor x = at::randn({c.rows, c.in}), w = at::randn({c.out, c.in}), b = at::randn({c.out});
    at::set_num_threads(1);
    const at::Tensor alone = zoo::kernels::linear(x, w, b);
    at::set_num_threads(3);
    CHECK(zoo::kernels::linear(x, w, b).equal(alone));
  }
  at::set_num_threads(before);
}

TEST_CASE("An addend of the CPU kernels gets its gradient where nothing else wants one") {
  ZOO_NEEDS_TRAINING_KERNELS;
  const at::Tensor x = at::randn({16, 4}), w = at::randn({4, 4}), addend = leaf({16, 4});
  const at::Tensor upstream = at::randn({16, 4});
  for (const bool mixed : {false, true}) {
    if (mixed && !zoo::kernels::has_bfloat16_products()) continue;
    INFO((mixed ? "mixed precision" : "float32"));
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, mixed);
    const at::Tensor added = zoo::kernels::linear(x, w, {}, addend);
    const at::Tensor through = zoo::kernels::feed_forward(x, {w, {}, w, {}}, Pointwise::kRelu, addend);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    CHECK(torch::autograd::grad({added}, {addend}, {upstream})[0].equal(upstream));
    CHECK(torch::autograd::grad({through}, {addend}, {upstream})[0].equal(upstream));
  }
}

TEST_CASE("A second derivative through the CPU kernels is refused") {
  ZOO_NEEDS_TRAINING_KERNELS;
  const at::Tensor x = leaf({16, 4}), w = leaf({3, 4});
  const at::Tensor loss = zoo::kernels::linear(x, w, {}).square().sum();
  CHECK_THROWS_WITH(torch::autograd::grad({loss}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true),
                    Catch::Contains("no second derivatives"));
}

TEST_CASE("The CPU kernels are not used for few rows, other types and autocast") {
  const at::Tensor x = at::randn({16, 4}), w = at::randn({3, 4});
  CHECK(zoo::kernels::has_fast_linear(x, w) == zoo::kernels::has_training_kernels());
  CHECK_FALSE(zoo::kernels::has_fast_linear(x.slice(0, 0, 15), w));
  CHECK_FALSE(zoo::kernels::has_fast_linear(x.to(at::kBFloat16), w.to(at::kBFloat16)));
  CHECK_FALSE(zoo::kernels::has_fast_linear(x, at::randn({4, 3})));
}

TEST_CASE("parallel_for works on several threads and visits each index once") {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::vector<int> visits(101, 0);
  zoo::parallel_for(0, 101, 1, [&](std::int64_t first, std::int64_t last) {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
    for (std::int64_t i = first; i < last; ++i) ++visits[static_cast<std::size_t>(i)];
  });
  at::set_num_threads(before);
  CHECK(threads.size() == 2);
  CHECK(visits == std::vector<int>(101, 1));
}
