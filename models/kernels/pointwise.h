#pragma once

namespace zoo::kernels {

/// What a matrix product does to its result on the way (layers/transformer_config.h: Activation).
enum class Pointwise { kNone, kRelu, kGelu, kGeluTanh, kSilu };

}  // namespace zoo::kernels
