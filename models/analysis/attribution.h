#pragma once

/// @file
/// Use:
///
///     const zoo::analysis::Run run = zoo::analysis::run(model, {.input_ids = ids_of_rows});
///     const auto shares = zoo::analysis::attribute_logit(model, run, {.token = 42});
///     std::cout << shares.logit << "\n" << shares.heads << "\n";  // heads [L, H]

#include "models/analysis/logit_target.h"
#include "models/analysis/residual_stream.h"

namespace zoo::analysis {

/// Shares of a logit, or of a difference of two logits: they sum to `logit`, up to rounding.
struct LogitAttribution {
  double logit = 0;            // before the head's softcap (Gemma 2)
  double capped = 0;           // after it: the model's own
  double embeddings = 0;       // of the first layer's input
  double biases = 0;           // of the final norm and of the head
  at::Tensor attention;        // [L], float64; includes its heads and biases
  at::Tensor cross_attention;  // [L]; undefined without cross-attention
  at::Tensor feed_forward;     // [L]
  at::Tensor heads;            // [L, H]
  at::Tensor cross_heads;      // [L, H]; undefined without cross-attention
};

/// Direct logit attribution (Elhage et al., 2021, "A Mathematical Framework for Transformer Circuits"): the
/// residual stream is the sum of the sublayers' outputs, and the logit is linear in it if the norms' means
/// and scales are fixed to those of this pass. Uses the first row. Throws c10::Error if there is no such sum:
/// in post-LN, which normalises it after each sublayer, and for a head with a layer of its own.
LogitAttribution attribute_logit(const Model& model, const Run& run, const LogitTarget& target);

}  // namespace zoo::analysis
