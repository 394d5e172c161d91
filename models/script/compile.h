#pragma once

#include <torch/csrc/jit/api/module.h>

#include "models/script/script_part.h"

namespace zoo::script {

/// Compiles the module that `part` describes, in evaluation mode; converts its tensors to `dtype` on the CPU.
/// They share no storage with other tensors of the model. Throws c10::Error for text that does not compile
/// and for parts of one class that differ.
torch::jit::Module compile(const ScriptPart& part, at::ScalarType dtype);

}  // namespace zoo::script
