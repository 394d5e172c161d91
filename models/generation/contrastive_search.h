#pragma once

#include <memory>

#include "models/generation/token_loop.h"

namespace zoo {

/// Scores [k] of candidates: (1 - alpha) p(v) - alpha max_j cos(h_v, h_j), from their probabilities [k],
/// their hidden states [k, C] and the unit vectors [T, C] of earlier hidden states; nothing is subtracted if
/// there are none.
at::Tensor contrastive_scores(const at::Tensor& probabilities, const at::Tensor& candidates,
                              const at::Tensor& before, double alpha);

/// generate() with options.contrastive. Idea: a likely token whose hidden state resembles earlier ones starts
/// a repetition, so each step runs the model on the top_k candidates and weighs likelihood against that
/// similarity. The candidates of all rows are rows of one session. Throws Error as generate() does.
std::unique_ptr<TokenLoop> contrastive_loop(GenerationTask& task);

}  // namespace zoo
