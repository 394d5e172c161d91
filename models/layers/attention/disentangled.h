#pragma once

#include <ATen/core/Tensor.h>

namespace zoo {

// Disentangled attention (He et al., 2021): the distance between two tokens has a vector of its own, which
// the projections of the tokens' queries and keys turn into a query and a key.

/// The distances of one forward pass, shared by its layers.
struct Distances {
  at::Tensor vectors;  // [2 k, C]; undefined: attention is not disentangled
  at::Tensor rows;     // [T, S] int64: the vector between query t and key s
  /// [B, 1, T, 1] bool: queries that are padding, which attend to all positions evenly (DeBERTa's code: the
  /// loss of question answering reads them). Undefined: none.
  at::Tensor padding;
};

/// Row of each distance, key position - query position, of any shape: k at 0, less the farther right a key
/// is. Distances below k / 2 have a row each, the others logarithmically growing ranges up to `max_distance`.
at::Tensor distance_rows(const at::Tensor& distances, std::int64_t k, std::int64_t max_distance);

/// scale (q_t . key_r + k_s . query_r), r = rows[t, s] (section 3.1: content to position, position to
/// content). q [B, H, T, D], k [B, H, S, D], queries and keys of the vectors [H, 2 k, D]; to [B, H, T, S].
at::Tensor disentangled_scores(const at::Tensor& q, const at::Tensor& k, const at::Tensor& vector_queries,
                               const at::Tensor& vector_keys, const at::Tensor& rows, double scale);

}  // namespace zoo
