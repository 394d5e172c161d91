#pragma once

namespace zoo::kernels {

/// Activation that a matrix product applies to its result (ops/activation.h: Activation).
enum class Pointwise { kNone, kRelu, kGelu, kGeluTanh, kSilu, kRelu2 };

}  // namespace zoo::kernels
