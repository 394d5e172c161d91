#pragma once

#include <string>
#include <vector>

#include "models/graph/graph.h"
#include "models/onnx/onnx_file.h"

namespace zoo::onnx {

/// The graph as a file of ONNX, whose outputs have these names. Names of inputs and of free sizes are the
/// graph's. Throws Error naming an operator, or a use of it, that has no translation.
File translate(const graph::Graph& graph, const std::string& file, const std::vector<std::string>& outputs);

}  // namespace zoo::onnx
