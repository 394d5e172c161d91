#pragma once

#include "models/generation/generate.h"

namespace zoo {

/// The score [k] of each candidate: (1 - alpha) p(v) - alpha max_j cos(h_v, h_j), of their probabilities [k],
/// their hidden states [k, C] and the directions of those before them, [T, C] of length 1; where there are
/// none, nothing is taken off.
at::Tensor contrastive_scores(const at::Tensor& probabilities, const at::Tensor& candidates,
                              const at::Tensor& before, double alpha);

/// generate() with options.contrastive: the candidates of all rows are read at once, as rows of one session.
/// Throws Error as it does.
void generate_contrastive(DecodingModel& model, const std::vector<TokenIds>& prompts,
                          const GenerationOptions& options, const TokenCallback& on_token,
                          GenerationResult& result);

}  // namespace zoo
