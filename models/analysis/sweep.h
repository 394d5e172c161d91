#pragma once

/// @file
/// Use:
///
///     const zoo::analysis::SweepOptions heads{.part = zoo::LayerPart::kAttention, .heads = true};
///     const auto off = zoo::analysis::ablation_sweep(model, inputs, heads, zoo::analysis::Ablation::kZero);
///     std::cout << off.whole << "\n" << off.ablated << "\n";  // [L, H], each head off by itself
///     const auto effects = zoo::analysis::patch_sweep(model, clean, corrupted, {.target = {.token = 42}});
///     std::cout << effects.clean << " " << effects.corrupted << "\n" << effects.patched << "\n";  // [L, P]

#include <functional>
#include <vector>

#include "models/analysis/logit_target.h"
#include "models/analysis/residual_stream.h"

namespace zoo::analysis {

/// The cells of a sweep: a part of each layer at each position, or each of its heads at all of them together.
struct SweepOptions {
  Shape stack = Shape::kDecoder;
  LayerPart part = LayerPart::kResidual;
  bool heads = false;                   // one cell for each head of the part, an attention
  std::vector<std::int64_t> positions;  // in [0, T); empty: all
  LogitTarget target;                   // what is measured
  /// Called after each forward pass of the sweep; an exception ends the sweep.
  std::function<void(std::int64_t done, std::int64_t total)> progress;
};

/// The inputs with logits of only the last position, if the target is there and the model supports it; the
/// target's position is then -1. Logits take most of a small model's time.
ModelInputs answering_inputs(const Model& model, const ModelInputs& inputs, LogitTarget& target);

using CellInterventions = std::function<std::vector<Intervention>(const Site& site, std::int64_t column)>;

/// measure() of the target under the interventions of each cell: [L, columns], float64, by one forward pass
/// each. A column is a head if options.heads is set, else a position.
at::Tensor sweep(Model& model, const ModelInputs& inputs, const SweepOptions& options, std::int64_t columns,
                 const CellInterventions& interventions);

/// The value that replaces the output of an ablated site. kZero: zeros; for a layer (LayerPart::kResidual),
/// its input. kMean: the site's mean over the sequence's positions in the pass without ablations, which
/// removes only the differences between positions.
enum class Ablation { kZero, kMean };

/// Interventions that switch the sites off everywhere. kMean runs the model; throws c10::Error for a layer.
std::vector<Intervention> ablated(Model& model, const ModelInputs& inputs, const std::vector<Site>& sites,
                                  Ablation ablation);

/// measure() of a sweep's target with each part of each layer, or each of its heads, ablated separately.
struct AblationEffects {
  double whole = 0;    // without ablations
  at::Tensor ablated;  // [L, 1] or [L, H], float64
};
AblationEffects ablation_sweep(Model& model, const ModelInputs& inputs, const SweepOptions& options,
                               Ablation ablation);

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
