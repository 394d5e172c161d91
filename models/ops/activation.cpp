#include "models/ops/activation.h"

#include <array>

#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>
#include <c10/util/Exception.h>

#include "models/kernels/training/row_functions.h"

namespace zoo {

std::string_view name_of(Activation activation) {
  constexpr std::array<std::string_view, 10> kNames{"relu",  "gelu",  "gelu_tanh",  "silu", "swiglu",
                                                    "geglu", "reglu", "geglu_tanh", "tanh", "relu2"};
  return kNames.at(static_cast<std::size_t>(activation));
}

bool is_gated(Activation activation) { return gate_of(activation) != activation; }

Activation gate_of(Activation activation) {
  switch (activation) {
    case Activation::kSwiGlu: return Activation::kSilu;
    case Activation::kGeGlu: return Activation::kGelu;
    case Activation::kGeGluTanh: return Activation::kGeluTanh;
    case Activation::kReGlu: return Activation::kRelu;
    default: return activation;
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
    case Activation::kRelu: return kernels::Pointwise::kRelu;
    case Activation::kGelu: return kernels::Pointwise::kGelu;
    case Activation::kGeluTanh: return kernels::Pointwise::kGeluTanh;
    case Activation::kSilu: return kernels::Pointwise::kSilu;
    case Activation::kRelu2: return kernels::Pointwise::kRelu2;
    default: return kernels::Pointwise::kNone;
  }
}

at::Tensor activate(const at::Tensor& x, Activation activation) {
  if (is_gated(activation)) {
    if (const auto f = pointwise(gate_of(activation));
        f != kernels::Pointwise::kNone && kernels::has_fast_gated_unit(x))
      return kernels::gated_unit(x, f);
    const auto halves = x.chunk(2, -1);
    return activate(halves[0], gate_of(activation)) * halves[1];
  }
  switch (activation) {
    case Activation::kRelu: return at::relu(x);
    case Activation::kGelu: return at::gelu(x, "none");
    case Activation::kGeluTanh: return at::gelu(x, "tanh");
    case Activation::kSilu: return at::silu(x);
    case Activation::kTanh: return at::tanh(x);
    case Activation::kRelu2: return at::relu(x).square();
    default: TORCH_CHECK(false, "unknown activation ", static_cast<int>(activation));
  }
}

at::Tensor softcap(const at::Tensor& x, double cap) { return cap > 0 ? at::tanh(x / cap) * cap : x; }

}  // namespace zoo
