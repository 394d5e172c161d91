#pragma once

#include "models/onnx/file_builder.h"

namespace zoo::onnx {

/// Adds the operators of ONNX that compute what the node does; returns the names of its results, lists one by
/// one. Throws Error naming an operator, or an argument of it, that has no translation.
Names translated(FileBuilder& builder, const graph::Node& node);

}  // namespace zoo::onnx
