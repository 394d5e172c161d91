#pragma once

#include <ATen/core/Generator.h>

#include "models/layers/stack.h"

namespace zoo::t5 {

/// Fresh weights of an encoder or a decoder: normal(0, factor / sqrt(width of what is projected)), queries
/// normal(0, factor / sqrt(C D)), which stands for the missing scale of the scores; norms one.
void initialize(TransformerStackImpl& stack, const TransformerConfig& config, at::Generator generator);

}  // namespace zoo::t5
