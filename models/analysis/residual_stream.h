#pragma once

/// @file
/// Use:
///
///     const zoo::analysis::Run run = zoo::analysis::run(model, {.input_ids = ids_of_rows});
///     const at::Tensor norms = zoo::analysis::stream_norms(run);  // [num_layers + 1, B, T]

#include <vector>

#include "models/model.h"

namespace zoo::analysis {

/// The stack before a model's head; in an encoder-decoder, the decoder. Throws c10::Error for a model without
/// one (packed weights, the tutorials' models).
TransformerStackImpl& head_stack(const Model& model);

/// One forward pass with all states that the analyses need.
struct Run {
  ModelOutput output;
  /// num_layers + 1 of [B, T, C] in head_stack(): the embeddings, then the stream after each layer, always
  /// before the final norm.
  std::vector<at::Tensor> stream;
};

/// Runs the model, with inputs.interventions. The model must be in evaluation mode.
Run run(Model& model, ModelInputs inputs);

/// Output of a site in the run: [B, T, C], for a head [B, T, D]. Throws c10::Error if there is no such site.
at::Tensor activation_at(const Model& model, const Run& run, const Site& site);

/// Euclidean lengths [num_layers + 1, B, T] of the residual stream.
at::Tensor stream_norms(const Run& run);

}  // namespace zoo::analysis
