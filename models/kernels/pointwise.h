#pragma once

namespace zoo::kernels {

/// Activation that a matrix product applies to its result (layers/transformer_config.h: Activation).
enum class Pointwise { kNone, kRelu, kGelu, kGeluTanh, kSilu };

}  // namespace zoo::kernels
