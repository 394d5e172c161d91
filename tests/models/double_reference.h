#pragma once

#include <cmath>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/support/catch.h"

// A function with gradients beside the same in double precision.
namespace zoo::test {

/// As large as in a network: sums over the last dimension stay near 1.
inline at::Tensor leaf(at::IntArrayRef sizes) {
  return (at::randn(sizes) / std::sqrt(static_cast<double>(sizes.back()))).requires_grad_();
}

/// The largest difference beside the largest value.
inline double error_beside(const at::Tensor& actual, const at::Tensor& expected) {
  return ((actual.to(at::kDouble) - expected).abs().max() / expected.abs().max()).item<double>();
}

/// Compares the result and all gradients of ours(inputs) with theirs(inputs in double precision).
template <class Ours, class Theirs>
void compare(const std::vector<at::Tensor>& inputs, const Ours& ours, const Theirs& theirs) {
  std::vector<at::Tensor> wide;
  for (const at::Tensor& input : inputs) wide.push_back(input.detach().to(at::kDouble).requires_grad_());
  const at::Tensor actual = ours(inputs), expected = theirs(wide);
  REQUIRE(actual.sizes() == expected.sizes());
  CHECK(error_beside(actual, expected) < 3e-6);
  const at::Tensor weight = at::randn(actual.sizes());
  const auto gradients = torch::autograd::grad({(actual * weight).sum()}, inputs);
  const auto wide_gradients = torch::autograd::grad({(expected * weight.to(at::kDouble)).sum()}, wide);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    INFO("gradient " << i);
    REQUIRE(gradients[i].sizes() == inputs[i].sizes());
    CHECK(error_beside(gradients[i], wide_gradients[i]) < 5e-6);
  }
}

}  // namespace zoo::test
