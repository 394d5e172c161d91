#pragma once

#include <functional>

#include <torch/nn/module.h>

#include "models/graph/graph.h"

namespace zoo::graph {

struct TraceRequest {
  std::vector<Symbol> symbols;
  std::vector<Input> inputs;
  /// Three values of each symbol: two that find sizes, and one that checks them.
  std::vector<std::vector<std::int64_t>> points;
  /// The pass, of a module whose parameters and buffers the graph names.
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> forward;
};

/// Records the operators that `forward` calls at several sizes, outside any operator: linear or
/// scaled_dot_product_attention, not what they consist of. They must be the same at all sizes, and each
/// integer among their arguments a polynomial of the sizes. An operator that writes into its argument becomes
/// the one that does not. Tensors that no operator made are constants.
///
/// Throws Error naming the operator that reads a tensor's values, writes into a tensor with views, or has an
/// argument that does not follow from the sizes.
Graph trace(const torch::nn::Module& module, const TraceRequest& request);

}  // namespace zoo::graph
