#pragma once

/// @file
/// Use:
///
///     const zoo::analysis::Run run = zoo::analysis::run(model, {.input_ids = ids_of_rows});
///     const zoo::analysis::LogitLens lens =
///         zoo::analysis::logit_lens(model, run, {.top_k = 5, .positions = {3}});
///     std::cout << lens.ids.select(1, 0) << "\n";  // [L + 1, top_k]: the answers after each layer

#include <optional>
#include <vector>

#include "models/analysis/residual_stream.h"

namespace zoo::analysis {

struct LensOptions {
  std::int64_t top_k = 5;               // capped at V
  std::vector<std::int64_t> positions;  // in [0, T); empty: all
  std::optional<std::int64_t> token;    // also return its probability and rank
};

/// Answers of the head after 0, 1, … L layers at P positions.
struct LogitLens {
  at::Tensor ids, probabilities;   // [L + 1, P, top_k], the most probable first
  at::Tensor entropies;            // [L + 1, P], in bits
  at::Tensor divergences;          // [L + 1, P], KL(last layer || this layer), in bits
  at::Tensor token_probabilities;  // [L + 1, P] of options.token; undefined without it
  at::Tensor token_ranks;          // [L + 1, P], 0 is the most probable
};

/// KL(p || q) of log-probabilities [*, V], in bits: [*]. Terms with p = 0 are 0.
at::Tensor divergence(const at::Tensor& log_p, const at::Tensor& log_q);

/// True for a head that gives logits at every position.
bool has_lens(const Model& model);

/// Logits [B, T, V] for the states [B, T, C] after a layer, by the final norm and the head with its dense
/// layer, norm, scale and softcap. Throws c10::Error for a head that does not give logits at every position.
at::Tensor lens_logits(const Model& model, const at::Tensor& states);

/// The logit lens (nostalgebraist, 2020): the head's answer for the residual stream after each layer. The
/// last layer's answer is the model's. Uses the first row.
LogitLens logit_lens(const Model& model, const Run& run, const LensOptions& options);

}  // namespace zoo::analysis
