#pragma once

/// @file
/// Use:
///
///     const zoo::ModelOutput output = model.forward({.input_ids = ids_of_rows, .output_attentions = true});
///     const at::Tensor penalty =
///         zoo::position_similarity(output.attentions.front());  // [], with a gradient

#include <ATen/core/Tensor.h>

namespace zoo {

// Disagreement penalties: loss terms that fall as the heads of an attention differ more. Each is a scalar
// with a gradient. Li et al. (2018), section 3.2, maximise the disagreement, the same with the opposite sign;
// their mean runs over all H^2 ordered pairs, including a head with itself.

/// Attended positions: 1 / H^2 * sum over i, j of the mean over batch and queries of sum_s A_i A_j.
/// weights [B, H, T, S]; in [0, 1], 1 when all heads attend to the same single key.
at::Tensor position_similarity(const at::Tensor& weights);

/// Subspaces or outputs: 1 / H^2 * sum over i, j of the mean over batch and positions of
/// cos(x_i, x_j). heads [B, H, T, D], the heads' values or outputs; in [-1, 1].
at::Tensor subspace_similarity(const at::Tensor& heads);

/// The tutorial's version: the SUM over batch, keys and pairs i < j of A_i A_j for the given queries.
/// weights [B, H, T, S]; 0 when no two heads attend to the same key.
at::Tensor head_overlap(const at::Tensor& weights);

}  // namespace zoo
