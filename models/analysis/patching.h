#pragma once

/// @file
/// Use:
///
///     const zoo::analysis::SweepOptions options{.target = {.token = 42}};
///     const auto effects = zoo::analysis::patch_sweep(model, clean, corrupted, options);
///     std::cout << effects.clean << " " << effects.corrupted << "\n" << effects.patched << "\n";  // [L, P]

#include <vector>

#include "models/analysis/sweep.h"

namespace zoo::analysis {

/// measure() of a sweep's target.
struct PatchEffects {
  double clean = 0, corrupted = 0;  // of the two runs
  at::Tensor patched;               // [L, P] or [L, H], float64: of the corrupted run with one patch
};

/// Activation patching, as in causal tracing (Meng et al., 2022, section 2.1): the corrupted input runs once
/// for each site, with this site's output copied from the clean run. A patch that restores the clean answer
/// shows where the model holds the difference between the inputs. Each input is one sequence, both of the
/// same length in the stack. Throws c10::Error for other inputs and a part that the stack lacks.
PatchEffects patch_sweep(Model& model, const ModelInputs& clean, const ModelInputs& corrupted,
                         const SweepOptions& options);

/// The interventions that write the clean run's output of the sites at the positions (empty: all).
std::vector<Intervention> patches(const Model& model, const Run& clean, const std::vector<Site>& sites,
                                  const std::vector<std::int64_t>& positions);

}  // namespace zoo::analysis
