#pragma once

#include <ATen/core/Tensor.h>

namespace zoo {

// Penalties that keep the heads of an attention apart: a term of the loss, the smaller the more the heads
// differ. Each is a scalar with a gradient. Li et al. (2018), section 3.2, maximise the disagreement, which
// is the same with the other sign; their mean runs over all H^2 ordered pairs, a head with itself among them.

/// On attended positions: 1 / H^2 * sum over i, j of the mean over batch and queries of sum_s A_i A_j.
/// weights [B, H, T, S]; in [0, 1], 1 when all heads look at the same single key.
at::Tensor position_similarity(const at::Tensor& weights);

/// On subspaces or on outputs: 1 / H^2 * sum over i, j of the mean over batch and positions of
/// cos(x_i, x_j). heads [B, H, T, D], the heads' values or what they give; in [-1, 1].
at::Tensor subspace_similarity(const at::Tensor& heads);

/// The tutorial's: the SUM over batch, keys and pairs i < j of A_i A_j for the queries given.
/// weights [B, H, T, S]; 0 when no two heads look at the same key.
at::Tensor head_overlap(const at::Tensor& weights);

}  // namespace zoo
