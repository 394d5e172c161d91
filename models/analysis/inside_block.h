#pragma once

/// @file
/// Use:
///
///     const zoo::analysis::Run run = zoo::analysis::run(model, {.input_ids = ids_of_rows});
///     const zoo::analysis::InsideBlock inside = zoo::analysis::inside_block(
///         model, *model.parts().decoder, 2, {run.stream[2], run.output.activations[2]}, /*position=*/3);
///     std::cout << inside.neurons[0].id << "\n";  // the strongest of the feed-forward network

#include <optional>
#include <string>
#include <vector>

#include "models/model.h"

namespace zoo::analysis {

/// What a norm does to a state: (x - mean) / divisor, before its weight and bias.
struct NormNumbers {
  std::string name;              // of the block's module; "final_norm" after the last block
  std::optional<double> mean;    // none: RMSNorm
  double divisor = 0;            // sqrt(variance + eps), or the root of the mean square + eps
  double before = 0, after = 0;  // lengths of the state, and of what the norm gives
};

/// A neuron of the feed-forward network, of a gated one the product.
struct Neuron {
  std::int64_t id = 0;
  double activation = 0;
  double strength = 0;               // |activation| times the length of its output column
  std::vector<std::int64_t> tokens;  // that activation times column raises most in the output table's product
};

struct InsideBlock {
  std::vector<NormNumbers> norms;
  std::vector<Neuron> neurons;         // the strongest first, without those that are 0; empty for experts
  at::Tensor experts, expert_weights;  // [T, k], the largest weight first; undefined without experts
};

/// State [1, T, C] before a block, and the record of its run.
struct BlockRun {
  const at::Tensor& input;
  const LayerActivations& seen;
};

/// Numbers at one position of a block, recomputed from what the run has recorded. Tokens (Geva et al., 2022,
/// section 3) only where the head multiplies the stack's states by its table directly.
InsideBlock inside_block(const Model& model, TransformerStackImpl& stack, std::int64_t layer,
                         const BlockRun& run, std::int64_t position);

}  // namespace zoo::analysis
