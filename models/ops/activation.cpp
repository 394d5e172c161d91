#include "models/ops/activation.h"

#include <array>
#include <cmath>

#include <ATen/ops/clamp.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>
#include <c10/util/Exception.h>

namespace zoo {

std::string_view name_of(Activation activation) {
  constexpr std::array<std::string_view, 19> kNames{
      "relu",       "gelu",       "gelu_tanh", "silu",     "swiglu",     "geglu",        "reglu",
      "geglu_tanh", "tanh",       "sigmoid",   "identity", "quick_gelu", "clipped_gelu", "relu_squared",
      "relu6",      "leaky_relu", "hardswish", "mish",     "laplace"};
  return kNames.at(static_cast<std::size_t>(activation));
}

bool is_gated(Activation activation) {
  return gate_of(activation) != activation;
}

Activation gate_of(Activation activation) {
  switch (activation) {
    case Activation::kSwiGlu:
      return Activation::kSilu;
    case Activation::kGeGlu:
      return Activation::kGelu;
    case Activation::kGeGluTanh:
      return Activation::kGeluTanh;
    case Activation::kReGlu:
      return Activation::kRelu;
    default:
      return activation;
  }
}

std::optional<Activation> gated_unit(Activation gate) {
  for (const Activation unit :
       {Activation::kSwiGlu, Activation::kGeGlu, Activation::kGeGluTanh, Activation::kReGlu}) {
    if (gate_of(unit) == gate) return unit;
  }
  return std::nullopt;
}

kernels::Pointwise pointwise(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return kernels::Pointwise::kRelu;
    case Activation::kGelu:
      return kernels::Pointwise::kGelu;
    case Activation::kGeluTanh:
      return kernels::Pointwise::kGeluTanh;
    case Activation::kSilu:
      return kernels::Pointwise::kSilu;
    default:
      return kernels::Pointwise::kNone;
  }
}

at::Tensor activate(const at::Tensor& x, Activation activation) {
  if (is_gated(activation)) {
    const auto halves = x.chunk(2, -1);
    return activate(halves[0], gate_of(activation)) * halves[1];
  }
  switch (activation) {
    case Activation::kRelu:
      return at::relu(x);
    case Activation::kGelu:
      return at::gelu(x, "none");
    case Activation::kGeluTanh:
      return at::gelu(x, "tanh");
    case Activation::kQuickGelu:
      return x * at::sigmoid(1.702 * x);
    case Activation::kClippedGelu:
      return at::clamp(at::gelu(x, "none"), -10, 10);
    case Activation::kSilu:
      return at::silu(x);
    case Activation::kTanh:
      return at::tanh(x);
    case Activation::kSigmoid:
      return at::sigmoid(x);
    case Activation::kIdentity:
      return x;
    case Activation::kReluSquared:
      return at::relu(x).square();
    case Activation::kRelu6:
      return at::clamp(x, 0, 6);
    case Activation::kLeakyRelu:
      return at::leaky_relu(x, 0.01);
    case Activation::kHardSwish:
      return at::hardswish(x);
    case Activation::kMish:
      return at::mish(x);
    case Activation::kLaplace:
      // The distribution function of a normal with the paper's mean and deviation.
      return 0.5 * (1.0 + at::erf((x - 0.707107) / (0.282095 * std::sqrt(2.0))));
    default:
      TORCH_CHECK(false, "unknown activation ", static_cast<int>(activation));
  }
}

at::Tensor softcap(const at::Tensor& x, double cap) {
  return cap > 0 ? at::tanh(x / cap) * cap : x;
}

}  // namespace zoo
