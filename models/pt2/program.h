#pragma once

#include <nlohmann/json_fwd.hpp>

#include "models/graph/graph.h"

namespace zoo::pt2 {

/// TensorMeta of a tensor that is in the file. Throws Error for a type that the schema lacks.
nlohmann::ordered_json tensor_meta(const at::Tensor& tensor, bool requires_grad);

/// The ExportedProgram of torch/_export/serde/schema.py, version 8. Throws Error naming what that lacks.
nlohmann::ordered_json program(const graph::Graph& graph);

}  // namespace zoo::pt2
