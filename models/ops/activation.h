#pragma once

#include <optional>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "models/kernels/pointwise.h"

namespace zoo {

/// GELU: Hendrycks and Gimpel (2016); kGeluTanh approximates it. kSwiGlu to kGeGluTanh are gated linear units
/// (Shazeer, 2020): activation(x W) * (x V). kRelu2 is relu(x)^2 (So et al., 2021).
enum class Activation { kRelu, kGelu, kGeluTanh, kSilu, kSwiGlu, kGeGlu, kReGlu, kGeGluTanh, kTanh, kRelu2 };

/// "relu", "gelu", "gelu_tanh", …: the names in flags and tables.
std::string_view name_of(Activation activation);

/// True for the gated linear units, whose up projection is twice as wide.
bool is_gated(Activation activation);

/// Elementwise activation of a gated unit's gate (SiLU for SwiGLU). Other activations are returned unchanged.
Activation gate_of(Activation activation);

/// The gated linear unit with this gate; nullopt if there is none.
std::optional<Activation> gated_unit(Activation gate);

/// The activation in the kernels' enum; kNone if they lack it.
kernels::Pointwise pointwise(Activation activation);

/// activation(x), elementwise. A gated unit takes gate and value side by side, [*, 2F], and returns [*, F].
at::Tensor activate(const at::Tensor& x, Activation activation);

/// c tanh(x / c), between -c and c; x for a cap c of 0.
at::Tensor softcap(const at::Tensor& x, double cap);

}  // namespace zoo
