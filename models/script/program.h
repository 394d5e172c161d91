#pragma once

#include <torch/csrc/jit/api/module.h>

#include "models/graph/graph.h"
#include "models/model.h"

namespace zoo::script {

/// The model's parameters and buffers under their names, in evaluation mode, on the CPU. Tied ones stay tied.
torch::jit::Module module_of(const Model& model);

/// Adds a traced pass of that model as the method `name`. Its first `inputs` inputs are arguments, the others
/// one List[Tensor]; so are outputs after the first `outputs`. It computes on its first input's device.
void add_method(torch::jit::Module& module, const std::string& name, const graph::Graph& graph,
                std::size_t inputs, std::size_t outputs);

}  // namespace zoo::script
